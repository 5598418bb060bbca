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

// PressureThresholds contains the thresholds of the pressure conditions of the node. A condition is
// true while the available amount of a resource is below the threshold. The zero Threshold disables
// the condition.
type PressureThresholds struct {
	Memory, Pids           Threshold
	Nodefs, NodefsInodes   Threshold // file system of the root directory
	Imagefs, ImagefsInodes Threshold // file system of the images
	// TransitionPeriod is the time for which a condition remains true after the available
	// amount has risen above the threshold.
	TransitionPeriod time.Duration
}

// A Threshold is an amount or, if Amount is 0, a share of the capacity.
type Threshold struct {
	// Amount is a number of bytes, inodes or processes.
	Amount int64
	// Share is a number from 0 to 1. It is a float32 as in the kubelet, so that podd and the
	// kubelet compute the same allocatable resources.
	Share float32
}

// AmountFor returns Amount or, if Amount is 0, Share of the capacity.
func (t Threshold) AmountFor(capacity int64) int64 {
	if t.Amount > 0 {
		return t.Amount
	}
	return int64(float64(capacity) * float64(t.Share))
}

// IsCrossed reports whether the available amount of a resource is less than the threshold. It
// returns false if the capacity is 0, which means that the capacity is unknown or unlimited.
func (t Threshold) IsCrossed(capacity, available int64) bool {
	return capacity > 0 && available < t.AmountFor(capacity)
}

// defaultEvictionHard contains the kubelet's default thresholds by signal.
var defaultEvictionHard = map[string]string{
	"memory.available": "100Mi",
	"nodefs.available": "10%", "nodefs.inodesFree": "5%",
	"imagefs.available": "15%", "imagefs.inodesFree": "5%",
}

// ignoredSignals contains the signals of the kubelet that have no effect in podd. The values
// are the reasons.
var ignoredSignals = map[string]string{
	"containerfs.available":       "because the threshold of nodefs or imagefs also applies to the writable layers of containers, as in the kubelet",
	"containerfs.inodesFree":      "because the threshold of nodefs or imagefs also applies to the writable layers of containers, as in the kubelet",
	"allocatableMemory.available": "because podd does not compare the memory usage of all pods with the allocatable memory",
}

// thresholdsBySignal returns a pointer to each threshold in p, by the signal of evictionHard that
// sets the threshold.
func (p *PressureThresholds) thresholdsBySignal() map[string]*Threshold {
	return map[string]*Threshold{
		"memory.available": &p.Memory, "pid.available": &p.Pids,
		"nodefs.available": &p.Nodefs, "nodefs.inodesFree": &p.NodefsInodes,
		"imagefs.available": &p.Imagefs, "imagefs.inodesFree": &p.ImagefsInodes,
	}
}

// addDefaultEvictionHard adds the default thresholds to the layer of --config if the file sets no
// thresholds. As in the kubelet, the thresholds of drop-ins are merged with these defaults.
func (l *layer) addDefaultEvictionHard() {
	if l.tree["evictionHard"] != nil {
		return
	}
	all := map[string]any{}
	for signal, text := range defaultEvictionHard {
		all[signal] = text
	}
	l.tree["evictionHard"] = all
}

// effectiveEvictionHard returns the effective threshold of each signal. If the user sets a
// threshold, the defaults of the other signals apply only if mergeDefaultEvictionSettings is true.
func effectiveEvictionHard(k *kubelet.KubeletConfiguration) map[string]string {
	all := map[string]string{}
	if k.EvictionHard == nil || k.MergeDefaultEvictionSettings != nil && *k.MergeDefaultEvictionSettings {
		maps.Copy(all, defaultEvictionHard)
	}
	maps.Copy(all, k.EvictionHard)
	return all
}

// newPressureThresholds returns the thresholds of k. checkEvictionHard must have found no error in
// k.
func newPressureThresholds(k *kubelet.KubeletConfiguration) PressureThresholds {
	p := PressureThresholds{TransitionPeriod: durationOr(k.EvictionPressureTransitionPeriod, newDefaults().EvictionPressureTransitionPeriod)}
	signals := p.thresholdsBySignal()
	for signal, text := range effectiveEvictionHard(k) {
		if t := signals[signal]; t != nil {
			*t, _ = parseThreshold(text)
		}
	}
	return p
}

// checkEvictionHard checks the signals and values of evictionHard.
func (c *checker) checkEvictionHard() {
	const field = "evictionHard"
	signals := new(PressureThresholds).thresholdsBySignal()
	report := func(severity manifest.Severity, signal, format string, args ...any) {
		o := c.merged.origin(joinKey(field, signal))
		c.problems = append(c.problems, o.keyProblem(severity, field, signal, fmt.Sprintf(format, args...)))
	}
	for _, signal := range slices.Sorted(maps.Keys(c.kubelet.EvictionHard)) {
		text := c.kubelet.EvictionHard[signal]
		_, err := parseThreshold(text)
		switch reason, ignored := ignoredSignals[signal]; {
		case err != nil:
			report(manifest.Error, signal, "%q: %v", text, err)
		case ignored:
			report(manifest.Warning, signal, "ignored, %s", reason)
		case signals[signal] == nil:
			report(manifest.Error, signal, "unknown signal; must be one of %s", strings.Join(slices.Sorted(maps.Keys(signals)), ", "))
		}
	}
}

// parseThreshold parses an amount such as 100Mi or a percentage such as 5%. 0% and 100% disable
// the threshold, so that the result is the zero Threshold.
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
	number, err := strconv.ParseFloat(percent, 32)
	switch {
	case err != nil || math.IsNaN(number):
		return t, errors.New("not a percentage such as 5%")
	case number < 0 || number > 100:
		return t, errors.New("out of range; must be between 0% and 100%")
	case percent == "100":
		return t, nil
	}
	return Threshold{Share: float32(number) / 100}, nil
}
