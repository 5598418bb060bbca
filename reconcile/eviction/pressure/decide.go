package pressure

import (
	"maps"
	"slices"
	"time"

	"podd/manifest/order"

	v1 "k8s.io/api/core/v1"
)

// An Observation contains the capacity and the available amount of one signal. A capacity of 0 means
// that the amount is unknown or unlimited; its thresholds are never met.
type Observation struct{ Capacity, Available int64 }

// Observations contains the observations of one moment. Signals that could not be observed are
// missing.
type Observations struct {
	Signals map[Signal]Observation
	Layout  Layout
	// IsComplete reports whether the file systems of images and writable layers are known. They are
	// unknown until the runtime has responded.
	IsComplete bool
}

// A Layout contains the IDs of the node's file systems. Equal IDs mean the same file system.
type Layout struct{ Nodefs, Imagefs, Containerfs uint64 }

// State is the data that Decide needs in its next call. The zero value is the initial state. Its
// maps are never modified.
type State struct {
	// metSince contains each threshold that is met or not resolved, with the time since when.
	metSince map[Threshold]time.Time
	// unresolved contains the thresholds that were due and whose minimum reclaim is not available
	// yet.
	unresolved []Threshold
	// lastMetAt contains the last time at which a threshold of each condition was met.
	lastMetAt map[v1.NodeConditionType]time.Time
}

// A MetThreshold is a threshold that is met, with its limit as an amount and the available amount.
type MetThreshold struct {
	Threshold
	Quantity, Available int64
}

// A Decision is the result of Decide.
type Decision struct {
	State State
	// Conditions contains the state of each pressure condition.
	Conditions Conditions
	// Met contains the thresholds that are met or not resolved, in the order of Signals. Due contains
	// those that the node must act on, the most urgent first: memory before other resources, then hard
	// before soft thresholds, then in the order of Signals.
	Met, Due []MetThreshold
	// WakeAt is the next time at which the decision changes although the observations stay the same;
	// zero means never.
	WakeAt time.Time
}

// Conditions contains the pressure conditions of the node. It is comparable.
type Conditions struct{ Memory, Disk, PIDs bool }

// Has reports whether the condition of this type is true.
func (c Conditions) Has(kind v1.NodeConditionType) bool {
	switch kind {
	case v1.NodeMemoryPressure:
		return c.Memory
	case v1.NodeDiskPressure:
		return c.Disk
	case v1.NodePIDPressure:
		return c.PIDs
	}
	return false
}

// NewConditions returns the Conditions in which the conditions of these types are true.
func NewConditions(types []v1.NodeConditionType) Conditions {
	return Conditions{
		Memory: slices.Contains(types, v1.NodeMemoryPressure), Disk: slices.Contains(types, v1.NodeDiskPressure), PIDs: slices.Contains(types, v1.NodePIDPressure),
	}
}

// Types returns the types of the conditions that are true, in the order in which a kubelet lists
// them in its Node.
func (c Conditions) Types() []v1.NodeConditionType {
	var types []v1.NodeConditionType
	for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
		if c.Has(kind) {
			types = append(types, kind)
		}
	}
	return types
}

// Decide returns the conditions and the thresholds to act on. s is the state that the previous call
// returned.
func Decide(p Policy, s State, o Observations, now time.Time) Decision {
	var d Decision
	d.State.metSince, d.State.lastMetAt = map[Threshold]time.Time{}, maps.Clone(s.lastMetAt)
	if d.State.lastMetAt == nil {
		d.State.lastMetAt = map[v1.NodeConditionType]time.Time{}
	}
	for _, t := range p.effectiveThresholds(o.Layout) {
		observation, isObserved := o.Signals[t.Signal]
		since, wasMet := s.metSince[t]
		wasDue := slices.Contains(s.unresolved, t)
		if isObserved && !t.isMet(observation, wasDue) || !isObserved && !wasMet {
			continue
		}
		if !wasMet || since.After(now) {
			since = now
		}
		d.State.metSince[t], d.State.lastMetAt[t.Signal.Condition()] = since, now
		dueAt := since.Add(t.GracePeriod)
		switch isDue := !now.Before(dueAt); {
		case !isObserved && wasDue:
			d.State.unresolved = append(d.State.unresolved, t)
		case !isObserved:
		case isDue:
			d.State.unresolved = append(d.State.unresolved, t)
			d.Due = append(d.Due, t.newMet(observation))
		default:
			d.wakeAt(dueAt)
		}
		if isObserved {
			d.Met = append(d.Met, t.newMet(observation))
		}
	}
	order.Stable(d.Due, func(a, b MetThreshold) int { return a.urgency() - b.urgency() })
	d.setConditions(p.TransitionPeriod, now)
	return d
}

// urgency returns a number that is lower for thresholds that must be acted on first. Memory comes first,
// because a shortage of memory can make the node unresponsive; as in a kubelet, this also applies to a soft
// threshold of memory. A hard threshold comes before a soft threshold, because a pod that is evicted because
// of a soft threshold may need its whole grace period.
func (t Threshold) urgency() (n int) {
	if t.Signal.Resource() != v1.ResourceMemory {
		n += 2
	}
	if !t.IsHard() {
		n++
	}
	return n
}

// setConditions sets d.Conditions from the last times at which thresholds were met.
func (d *Decision) setConditions(transition time.Duration, now time.Time) {
	isTrue := func(kind v1.NodeConditionType) bool {
		lastMetAt, wasMet := d.State.lastMetAt[kind]
		if !wasMet {
			return false
		}
		if lastMetAt.After(now) {
			lastMetAt = now
			d.State.lastMetAt[kind] = now
		}
		end := lastMetAt.Add(transition)
		if !now.Before(end) && !lastMetAt.Equal(now) {
			return false
		}
		if end.After(now) { // not with the transition period 0, because the threshold is still met
			d.wakeAt(end)
		}
		return true
	}
	d.Conditions = Conditions{isTrue(v1.NodeMemoryPressure), isTrue(v1.NodeDiskPressure), isTrue(v1.NodePIDPressure)}
}

// wakeAt sets WakeAt to the earlier of WakeAt and at.
func (d *Decision) wakeAt(at time.Time) {
	if d.WakeAt.IsZero() || at.Before(d.WakeAt) {
		d.WakeAt = at
	}
}

// effectiveThresholds returns the thresholds of p and those of containerfs, in the order of Signals.
// Thresholds of the same signal have the order of p.Thresholds.
func (p *Policy) effectiveThresholds(l Layout) []Threshold {
	containerfsSignals := map[Signal]Signal{NodefsAvailable: ContainerfsAvailable, NodefsInodesFree: ContainerfsInodesFree}
	if l.Containerfs == l.Imagefs && l.Imagefs != l.Nodefs {
		containerfsSignals = map[Signal]Signal{ImagefsAvailable: ContainerfsAvailable, ImagefsInodesFree: ContainerfsInodesFree}
	}
	thresholds := slices.Clone(p.Thresholds)
	for _, t := range p.Thresholds {
		if signal, ok := containerfsSignals[t.Signal]; ok {
			t.Signal = signal
			thresholds = append(thresholds, t)
		}
	}
	order.Stable(thresholds, func(a, b Threshold) int { return slices.Index(Signals, a.Signal) - slices.Index(Signals, b.Signal) })
	return thresholds
}

// isMet reports whether less than the limit is available. If wasDue is true, the minimum reclaim is
// added to the limit.
func (t Threshold) isMet(o Observation, wasDue bool) bool {
	if o.Capacity <= 0 {
		return false
	}
	limit := t.Limit.AmountFor(o.Capacity)
	if wasDue {
		return o.Available < limit || o.Available-limit < t.MinReclaim.AmountFor(o.Capacity)
	}
	return o.Available < limit
}

// IsResolved reports whether an observation ends the need to reclaim because of t. This is the case
// if at least the limit plus the minimum reclaim is available.
func (t Threshold) IsResolved(o Observation) bool { return !t.isMet(o, true) }

// newMet returns the MetThreshold for t, with the limit as an amount and the available amount of o.
func (t Threshold) newMet(o Observation) MetThreshold {
	return MetThreshold{Threshold: t, Quantity: t.Limit.AmountFor(o.Capacity), Available: o.Available}
}
