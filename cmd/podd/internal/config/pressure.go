package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// Pressure says when a node is under pressure: with less left of something than a
// threshold. The zero value of one is never met.
type Pressure struct {
	Memory, Pids           Threshold
	Nodefs, NodefsInodes   Threshold // where podd's root directory is
	Imagefs, ImagefsInodes Threshold // where the runtime has images
	// Transition is how long a node without pressure shows it still.
	Transition time.Duration
}

// Threshold is an amount, or a share of all that there is.
type Threshold struct {
	Amount int64
	// Share is of the kubelet's precision, which shows in what is allocatable.
	Share float32
}

// Of is the amount where all of it is whole.
func (t Threshold) Of(whole int64) int64 {
	if t.Amount > 0 {
		return t.Amount
	}
	return int64(float64(whole) * float64(t.Share))
}

// defaultEviction is a kubelet's when it is told of nothing.
var defaultEviction = map[string]string{
	"memory.available": "100Mi",
	"nodefs.available": "10%", "nodefs.inodesFree": "5%",
	"imagefs.available": "15%", "imagefs.inodesFree": "5%",
}

// unwatched are signals that a kubelet knows, with why they change nothing.
var unwatched = map[string]string{
	"containerfs.available":       "as by a kubelet: it takes the threshold of nodefs or imagefs, whichever containers write to",
	"containerfs.inodesFree":      "as by a kubelet: it takes the threshold of nodefs or imagefs, whichever containers write to",
	"allocatableMemory.available": "for it is not looked at what the pods together have left of their limit",
}

// signals are where each of evictionHard goes.
func (p *Pressure) signals() map[string]*Threshold {
	return map[string]*Threshold{
		"memory.available": &p.Memory, "pid.available": &p.Pids,
		"nodefs.available": &p.Nodefs, "nodefs.inodesFree": &p.NodefsInodes,
		"imagefs.available": &p.Imagefs, "imagefs.inodesFree": &p.ImagefsInodes,
	}
}

// presetEviction has the file of --config, where it says nothing, say the defaults: as
// with a kubelet, what a drop-in sets comes on top of them.
func (l *layer) presetEviction() {
	if l.tree["evictionHard"] != nil {
		return
	}
	all := map[string]any{}
	for signal, text := range defaultEviction {
		all[signal] = text
	}
	l.tree["evictionHard"] = all
}

// evictionHard is what is in force: with any signal set, those that are not have no
// threshold unless they are to be merged.
func evictionHard(k *kubelet.KubeletConfiguration) map[string]string {
	all := map[string]string{}
	if k.EvictionHard == nil || k.MergeDefaultEvictionSettings != nil && *k.MergeDefaultEvictionSettings {
		maps.Copy(all, defaultEviction)
	}
	maps.Copy(all, k.EvictionHard)
	return all
}

// pressureOf is of a configuration that was checked.
func pressureOf(k *kubelet.KubeletConfiguration) Pressure {
	p := Pressure{Transition: or(k.EvictionPressureTransitionPeriod, defaults().EvictionPressureTransitionPeriod)}
	signals := p.signals()
	for signal, text := range evictionHard(k) {
		if t := signals[signal]; t != nil {
			*t, _ = parseThreshold(text)
		}
	}
	return p
}

func (c *checking) pressure() {
	const field = "evictionHard"
	signals := new(Pressure).signals()
	tell := func(severity manifest.Severity, signal, format string, args ...any) {
		o := c.m.origin(join(field, signal))
		c.problems = append(c.problems, o.problem(severity, field, signal+": "+fmt.Sprintf(format, args...)))
	}
	for _, signal := range slices.Sorted(maps.Keys(c.k.EvictionHard)) {
		text := c.k.EvictionHard[signal]
		_, err := parseThreshold(text)
		switch why, known := unwatched[signal]; {
		case err != nil:
			tell(manifest.Error, signal, "%q: %v", text, err)
		case known:
			tell(manifest.Warning, signal, "ignored, %s", why)
		case signals[signal] == nil:
			tell(manifest.Error, signal, "no such signal; want %s", strings.Join(slices.Sorted(maps.Keys(signals)), ", "))
		}
	}
}

// parseThreshold reads an amount, as 100Mi, or a share, as 5%; 0% and 100% are no
// threshold at all.
func parseThreshold(text string) (t Threshold, err error) {
	percent, isShare := strings.CutSuffix(text, "%")
	if !isShare {
		q, err := resource.ParseQuantity(text)
		switch {
		case err != nil:
			return t, fmt.Errorf("no amount; want one like 100Mi or 5%%")
		case q.Sign() <= 0:
			return t, fmt.Errorf("not above 0; want 0%% for no threshold")
		}
		return Threshold{Amount: q.Value()}, nil
	}
	n, err := strconv.ParseFloat(percent, 32)
	switch {
	case err != nil || math.IsNaN(n):
		return t, fmt.Errorf("no percentage; want one like 5%%")
	case n < 0 || n > 100:
		return t, fmt.Errorf("out of range; want 0%% to 100%%")
	case percent == "100":
		return t, nil
	}
	return Threshold{Share: float32(n) / 100}, nil
}
