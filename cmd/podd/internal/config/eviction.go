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
	"podd/reconcile/eviction/pressure"
)

// defaultEvictionHard contains the kubelet's default thresholds by signal.
var defaultEvictionHard = map[string]string{
	"memory.available": "100Mi",
	"nodefs.available": "10%", "nodefs.inodesFree": "5%",
	"imagefs.available": "15%", "imagefs.inodesFree": "5%",
}

// ignoredSignals contains the signals whose thresholds have no effect. The values are the reasons.
var ignoredSignals = map[pressure.Signal]string{
	pressure.ContainerfsAvailable:  "because the threshold of nodefs or imagefs also applies to the writable layers of containers, as in the kubelet",
	pressure.ContainerfsInodesFree: "because the threshold of nodefs or imagefs also applies to the writable layers of containers, as in the kubelet",
}

// addDefaultEvictionHard adds the default thresholds to the layer of --config if the file sets no
// thresholds. As in the kubelet, the thresholds of drop-ins are merged with these defaults.
func (l *layer) addDefaultEvictionHard() {
	if l.tree["evictionHard"] != nil {
		return
	}
	thresholds := map[string]any{}
	for signal, text := range defaultEvictionHard {
		thresholds[signal] = text
	}
	l.tree["evictionHard"] = thresholds
}

// effectiveEvictionHard returns the effective hard threshold of each signal. If the user sets a
// threshold, the defaults of the other signals apply only if mergeDefaultEvictionSettings is true.
func effectiveEvictionHard(k *kubelet.KubeletConfiguration) map[string]string {
	thresholds := map[string]string{}
	if k.EvictionHard == nil || k.MergeDefaultEvictionSettings != nil && *k.MergeDefaultEvictionSettings {
		maps.Copy(thresholds, defaultEvictionHard)
	}
	maps.Copy(thresholds, k.EvictionHard)
	return thresholds
}

// newEvictionPolicy returns the eviction policy of k with a transition period. checkEviction must have
// found no error in k. The hard thresholds come first.
func newEvictionPolicy(k *kubelet.KubeletConfiguration, transition time.Duration) pressure.Policy {
	p := pressure.Policy{
		TransitionPeriod: transition,
		MaxPodGrace:      time.Duration(max(k.EvictionMaxPodGracePeriod, 0)) * time.Second,
	}
	add := func(texts map[string]string, grace map[string]string) {
		for _, signal := range pressure.Signals {
			limit, _ := parseThreshold(texts[string(signal)])
			if _, ignored := ignoredSignals[signal]; ignored || limit == (pressure.Limit{}) {
				continue
			}
			t := pressure.Threshold{Signal: signal, Limit: limit}
			t.MinReclaim, _ = parseMinimumReclaim(k.EvictionMinimumReclaim[string(signal)])
			t.GracePeriod, _ = time.ParseDuration(grace[string(signal)])
			p.Thresholds = append(p.Thresholds, t)
		}
	}
	add(effectiveEvictionHard(k), nil)
	if limit := p.Hard(pressure.MemoryAvailable); enforcesReserved(k) && limit != (pressure.Limit{}) {
		// As in the kubelet, the threshold also applies to the cgroup of all pods, because this
		// cgroup may reach its limit while the host has enough memory.
		t := p.Thresholds[0]
		t.Signal = pressure.AllocatableMemoryAvailable
		p.Thresholds = append(p.Thresholds, t)
	}
	add(k.EvictionSoft, k.EvictionSoftGracePeriod)
	return p
}

// checkEviction checks the signals and the values of all eviction settings.
func (c *checker) checkEviction() {
	k := c.kubelet
	c.checkSignals("evictionHard", k.EvictionHard, checkThreshold)
	c.checkSignals("evictionSoft", k.EvictionSoft, func(signal, text string) (string, error) {
		if _, ok := k.EvictionSoftGracePeriod[signal]; !ok {
			return "", errors.New("needs a grace period; add the signal to evictionSoftGracePeriod")
		}
		return checkThreshold(signal, text)
	})
	c.checkSignals("evictionSoftGracePeriod", k.EvictionSoftGracePeriod, func(signal, text string) (string, error) {
		d, err := time.ParseDuration(text)
		switch _, isUsed := k.EvictionSoft[signal]; {
		case err != nil:
			return "", errors.New("not a duration such as 90s")
		case d < 0:
			return "", errors.New("is negative")
		case !isUsed:
			return "ignored, because evictionSoft does not contain the signal", nil
		}
		return "", nil
	})
	c.checkSignals("evictionMinimumReclaim", k.EvictionMinimumReclaim, func(signal, text string) (string, error) {
		if _, err := parseMinimumReclaim(text); err != nil {
			return "", err
		}
		return ignoredWarning(signal), nil
	})
}

// checkSignals reports the unknown signals in a field. For the value of each known signal it reports
// the error and the warning that check returns. The warning "" means none.
func (c *checker) checkSignals(field string, values map[string]string, check func(signal, text string) (warning string, err error)) {
	for _, signal := range slices.Sorted(maps.Keys(values)) {
		report := func(severity manifest.Severity, message string) {
			o := c.merged.origin(joinKey(field, signal))
			c.problems = append(c.problems, o.keyProblem(severity, field, signal, message))
		}
		warning, err := check(signal, values[signal])
		switch {
		case !slices.Contains(pressure.Signals, pressure.Signal(signal)):
			report(manifest.Error, "unknown signal; must be one of "+strings.Join(settableSignals(), ", "))
		case err != nil:
			report(manifest.Error, fmt.Sprintf("%q: %v", values[signal], err))
		case warning != "":
			report(manifest.Warning, warning)
		}
	}
}

// checkThreshold returns an error if text is not a threshold. It returns a warning if the thresholds
// of signal have no effect.
func checkThreshold(signal, text string) (warning string, err error) {
	if _, err := parseThreshold(text); err != nil {
		return "", err
	}
	return ignoredWarning(signal), nil
}

// ignoredWarning returns the warning that a threshold of signal has no effect. It returns "" if
// thresholds of signal have an effect.
func ignoredWarning(signal string) string {
	if reason := ignoredSignals[pressure.Signal(signal)]; reason != "" {
		return "ignored, " + reason
	}
	return ""
}

// settableSignals returns the signals with thresholds that have an effect, sorted.
func settableSignals() []string {
	var signals []string
	for _, s := range pressure.Signals {
		if ignoredSignals[s] == "" {
			signals = append(signals, string(s))
		}
	}
	slices.Sort(signals)
	return signals
}

// parseThreshold parses an amount such as 100Mi or a percentage such as 5%. 0% and 100% disable
// the threshold, so that the result is the zero Limit.
func parseThreshold(text string) (t pressure.Limit, err error) {
	percent, isShare := strings.CutSuffix(text, "%")
	if !isShare {
		q, err := resource.ParseQuantity(text)
		switch {
		case err != nil:
			return t, errors.New("not an amount such as 100Mi or a percentage such as 5%")
		case q.Sign() <= 0:
			return t, errors.New("must be greater than 0; 0% disables the threshold")
		}
		return pressure.Limit{Amount: q.Value()}, nil
	}
	number, err := parsePercentage(percent)
	if err != nil || percent == "100" {
		return t, err
	}
	return pressure.Limit{Share: number}, nil
}

// parseMinimumReclaim parses an amount such as 500Mi or a percentage such as 5%. The amount may be
// 0.
func parseMinimumReclaim(text string) (pressure.Limit, error) {
	percent, isShare := strings.CutSuffix(text, "%")
	if isShare {
		number, err := parsePercentage(percent)
		if err == nil && number == 0 {
			err = errors.New("must be greater than 0%")
		}
		return pressure.Limit{Share: number}, err
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return pressure.Limit{}, errors.New("not an amount such as 100Mi or a percentage such as 5%")
	case q.Sign() < 0:
		return pressure.Limit{}, errors.New("is negative")
	}
	return pressure.Limit{Amount: q.Value()}, nil
}

// parsePercentage parses a number from 0 to 100, without the percent sign, and returns it as a share
// of 1.
func parsePercentage(text string) (float32, error) {
	number, err := strconv.ParseFloat(text, 32)
	switch {
	case err != nil || math.IsNaN(number):
		return 0, errors.New("not a percentage such as 5%")
	case number < 0 || number > 100:
		return 0, errors.New("out of range; must be between 0% and 100%")
	}
	return float32(number) / 100, nil
}
