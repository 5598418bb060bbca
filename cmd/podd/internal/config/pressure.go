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

// Pressure contains the thresholds below which a node is under pressure. A zero Threshold
// is never crossed.
type Pressure struct {
	Memory, Pids           Threshold
	Nodefs, NodefsInodes   Threshold // of the root directory
	Imagefs, ImagefsInodes Threshold // of the images
	// Transition is how long pressure is shown after it has ended.
	Transition time.Duration
}

// A Threshold is an amount, or a share of the capacity.
type Threshold struct {
	Amount int64
	// Share is a float32 as in the kubelet, because its precision shows in the allocatable
	// amount.
	Share float32
}

// Of returns the amount for a capacity of whole.
func (t Threshold) Of(whole int64) int64 {
	if t.Amount > 0 {
		return t.Amount
	}
	return int64(float64(whole) * float64(t.Share))
}

// defaultEviction contains the kubelet's default thresholds.
var defaultEviction = map[string]string{
	"memory.available": "100Mi",
	"nodefs.available": "10%", "nodefs.inodesFree": "5%",
	"imagefs.available": "15%", "imagefs.inodesFree": "5%",
}

// unwatched maps signals of the kubelet that have no effect to the reason.
var unwatched = map[string]string{
	"containerfs.available":       "as by a kubelet: it takes the threshold of nodefs or imagefs, whichever containers write to",
	"containerfs.inodesFree":      "as by a kubelet: it takes the threshold of nodefs or imagefs, whichever containers write to",
	"allocatableMemory.available": "for it is not looked at what the pods together have left of their limit",
}

// signals maps the signals of evictionHard to thresholds.
func (p *Pressure) signals() map[string]*Threshold {
	return map[string]*Threshold{
		"memory.available": &p.Memory, "pid.available": &p.Pids,
		"nodefs.available": &p.Nodefs, "nodefs.inodesFree": &p.NodefsInodes,
		"imagefs.available": &p.Imagefs, "imagefs.inodesFree": &p.ImagefsInodes,
	}
}

// presetEviction adds the default thresholds to the file of --config if it sets none: as
// in the kubelet, drop-ins are merged with them.
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

// evictionHard returns the effective thresholds: if a signal is set, the others have no
// threshold unless they are merged with the defaults.
func evictionHard(k *kubelet.KubeletConfiguration) map[string]string {
	all := map[string]string{}
	if k.EvictionHard == nil || k.MergeDefaultEvictionSettings != nil && *k.MergeDefaultEvictionSettings {
		maps.Copy(all, defaultEviction)
	}
	maps.Copy(all, k.EvictionHard)
	return all
}

// pressureOf converts a configuration that was checked.
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

// parseThreshold parses an amount such as 100Mi or a share such as 5%. 0% and 100%
// disable the threshold.
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
