package config

import (
	"errors"
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
	// Transition is how long pressure is reported after it has ended.
	Transition time.Duration
}

// A Threshold is an amount, or a share of the capacity.
type Threshold struct {
	Amount int64
	// Share is a float32 as in the kubelet, because the allocatable amounts must be equal.
	Share float32
}

// Of returns the amount for a capacity.
func (t Threshold) Of(capacity int64) int64 {
	if t.Amount > 0 {
		return t.Amount
	}
	return int64(float64(capacity) * float64(t.Share))
}

// defaultEviction contains the kubelet's default thresholds.
var defaultEviction = map[string]string{
	"memory.available": "100Mi",
	"nodefs.available": "10%", "nodefs.inodesFree": "5%",
	"imagefs.available": "15%", "imagefs.inodesFree": "5%",
}

// ignoredSignals maps the signals of the kubelet that have no effect in podd to the reason.
var ignoredSignals = map[string]string{
	"containerfs.available":       "as in the kubelet: the threshold of nodefs or imagefs applies, depending on where containers write",
	"containerfs.inodesFree":      "as in the kubelet: the threshold of nodefs or imagefs applies, depending on where containers write",
	"allocatableMemory.available": "because podd does not check how much memory is left below the limit of all pods",
}

// signals maps the signals of evictionHard to the thresholds of p.
func (p *Pressure) signals() map[string]*Threshold {
	return map[string]*Threshold{
		"memory.available": &p.Memory, "pid.available": &p.Pids,
		"nodefs.available": &p.Nodefs, "nodefs.inodesFree": &p.NodefsInodes,
		"imagefs.available": &p.Imagefs, "imagefs.inodesFree": &p.ImagefsInodes,
	}
}

// addDefaultEviction adds the default thresholds to the layer of --config if it sets none,
// because drop-ins are merged with them, as in the kubelet.
func (l *layer) addDefaultEviction() {
	if l.tree["evictionHard"] != nil {
		return
	}
	all := map[string]any{}
	for signal, text := range defaultEviction {
		all[signal] = text
	}
	l.tree["evictionHard"] = all
}

// evictionHard returns the effective thresholds. If the user sets a signal, the others have
// no threshold, unless mergeDefaultEvictionSettings is set.
func evictionHard(k *kubelet.KubeletConfiguration) map[string]string {
	all := map[string]string{}
	if k.EvictionHard == nil || k.MergeDefaultEvictionSettings != nil && *k.MergeDefaultEvictionSettings {
		maps.Copy(all, defaultEviction)
	}
	maps.Copy(all, k.EvictionHard)
	return all
}

// pressureFrom returns the Pressure of a configuration that was checked.
func pressureFrom(k *kubelet.KubeletConfiguration) Pressure {
	p := Pressure{Transition: durationOr(k.EvictionPressureTransitionPeriod, defaults().EvictionPressureTransitionPeriod)}
	signals := p.signals()
	for signal, text := range evictionHard(k) {
		if t := signals[signal]; t != nil {
			*t, _ = parseThreshold(text)
		}
	}
	return p
}

// checkEvictionHard checks the thresholds.
func (c *checker) checkEvictionHard() {
	const field = "evictionHard"
	signals := new(Pressure).signals()
	report := func(severity manifest.Severity, signal, format string, args ...any) {
		o := c.m.origin(joinKey(field, signal))
		c.problems = append(c.problems, o.keyProblem(severity, field, signal, fmt.Sprintf(format, args...)))
	}
	for _, signal := range slices.Sorted(maps.Keys(c.k.EvictionHard)) {
		text := c.k.EvictionHard[signal]
		_, err := parseThreshold(text)
		switch reason, ignored := ignoredSignals[signal]; {
		case err != nil:
			report(manifest.Error, signal, "%q: %v", text, err)
		case ignored:
			report(manifest.Warning, signal, "ignored, %s", reason)
		case signals[signal] == nil:
			report(manifest.Error, signal, "unknown signal; want one of %s", strings.Join(slices.Sorted(maps.Keys(signals)), ", "))
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
			return t, errors.New("not an amount such as 100Mi or a percentage such as 5%")
		case q.Sign() <= 0:
			return t, errors.New("must be greater than 0; 0% disables the threshold")
		}
		return Threshold{Amount: q.Value()}, nil
	}
	n, err := strconv.ParseFloat(percent, 32)
	switch {
	case err != nil || math.IsNaN(n):
		return t, errors.New("not a percentage such as 5%")
	case n < 0 || n > 100:
		return t, errors.New("out of range; want 0% to 100%")
	case percent == "100":
		return t, nil
	}
	return Threshold{Share: float32(n) / 100}, nil
}
