package state

import (
	"reflect"
	"time"

	"podd/reconcile/plan"
	"podd/runtime"
)

// Input returns the plan.Input for the next decision. It equals s.PlanInput, except that
// JournalError is set.
func (s *State) Input() plan.Input {
	in := s.PlanInput
	in.JournalError = ""
	if in.Desired != nil {
		in.JournalError = s.UnreadableJournals[in.Desired.UID]
	}
	return in
}

// UseSuccessor makes PlanInput.Successor the version in force. It must be called if the field
// UseSuccessor of a decision is set.
func (s *State) UseSuccessor(now time.Time) *State {
	t := s.begin(now)
	t.setVersion(t.PlanInput.Successor)
	t.applyRefs()
	return t.State
}

// Resume removes the end of a pod that was evicted or stopped by a node shutdown, so that the pod
// runs again. It must be called if the field Resume of a decision is set.
func (s *State) Resume(now time.Time) (*State, Outputs) {
	t := s.begin(now)
	if fin := t.PlanInput.History.Finished; fin != nil {
		t.PlanInput.History.Evictions = fin.Evictions
	}
	t.PlanInput.Eviction, t.PlanInput.History.Finished = nil, nil
	t.resetStartTime()
	t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
	return t.end()
}

// RecordDecision records the facts that must be in the journal before the actions of decision d
// start. The caller must call ConfirmEnd after it has carried out the writes.
func (s *State) RecordDecision(d plan.Decision, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	if d.Stopping != nil {
		t.PlanInput.History.Stopping = d.Stopping
		if inc := runtime.FindSandbox(t.PlanInput.Observed, d.Stopping.SandboxID); inc != nil && inc.ID != "" && d.Stopping.Grace > 0 {
			t.addWrite(inc.UID, inc.Annotations[runtime.AnnotationPodHash])
		}
	}
	for id, e := range d.Terminations {
		t.setTermination(id, e)
	}
	switch {
	case !d.RecordFirst:
		t.dropEnd(d)
	case d.Finished != nil:
		t.recordEnd(d.Finished)
	}
	return t.end()
}

// recordEnd writes the end fin of a pod that has finished by itself to the journal. The end takes
// effect when the write has succeeded; see ConfirmEnd. If the journal is already being written with
// an end that differs from fin only in its time, recordEnd keeps that end.
func (t *transition) recordEnd(fin *plan.PodEnd) {
	if t.pendingEnd != nil {
		finThen := *fin
		finThen.At = t.pendingEnd.At
		if finThen == *t.pendingEnd {
			fin = t.pendingEnd
		}
	}
	t.pendingEnd = fin
	if p := t.PlanInput.Desired; t.Records[p.UID].Finished != fin {
		t.addWrite(p.UID, p.Hash)
	}
}

// dropEnd removes an end that waits for the journal. It must be called only if decision d does not
// wait for the journal. If d contains an end, that end takes effect at once.
func (t *transition) dropEnd(d plan.Decision) {
	wasPending := t.pendingEnd != nil
	t.pendingEnd = nil
	if d.Finished != nil {
		t.PlanInput.History.Finished = d.Finished // see RecordUrgentEnd
	} else if wasPending && t.PlanInput.Desired != nil {
		t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash) // replace the journal, because it may contain the removed end
	}
}

// ConfirmEnd makes the end of the pod in decision d take effect if the journal contains the end.
// Otherwise ConfirmEnd returns the error of the write, and the end must not be published yet. If
// d.RecordFirst is false, ConfirmEnd changes nothing and returns no error.
func (s *State) ConfirmEnd(d plan.Decision) (*State, error) {
	if !d.RecordFirst || d.Finished == nil {
		return s, nil
	}
	if err := s.WriteError(s.PlanInput.Desired.UID); err != nil {
		return s, err
	}
	newState := s.clone()
	newState.PlanInput.History.Finished, newState.pendingEnd = s.pendingEnd, nil
	return newState, nil
}

// AwaitsJournal reports whether there is an end of the pod that takes effect only when it is in the
// journal.
func (s *State) AwaitsJournal() bool { return s.pendingEnd != nil }

// RecordUrgentEnd writes the end in decision d to the journal if the end took effect without
// waiting for the journal. It must be called after the actions of d were started, because the
// actions must not wait for a disk that does not respond.
func (s *State) RecordUrgentEnd(d plan.Decision, now time.Time) (*State, Outputs) {
	if d.Finished == nil || d.RecordFirst {
		return s, Outputs{}
	}
	if s.PlanInput.Desired.Traits.HasStateAtSource && len(s.PlanInput.Observed)+len(s.PlanInput.PodDirs) == 0 {
		return s, Outputs{} // no journal is necessary: nothing of the pod is on the node, and if the end is lost, it is decided again
	}
	t := s.begin(now)
	t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
	return t.end()
}

// BeginAction records the facts that must be in the journal before action a starts.
func (s *State) BeginAction(a plan.Action, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	switch a := a.(type) {
	case plan.PrepareVolumes:
		t.setDir(plan.PodDir{UID: t.PlanInput.Desired.UID, Hash: t.PlanInput.Desired.Hash, MayHaveVolumes: true})
		t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
	case plan.StopContainer:
		if a.WillRestart {
			t.changeContainer(a.Container, func(h *plan.ContainerHistory) { h.RestartRequestedID = a.ID })
		}
	case plan.StartContainer:
		if a.RunsPostStart {
			t.setPostStart(a.Container, plan.PostStartState{Attempt: a.Attempt, Due: true})
		}
	}
	t.recordUncertainSizes(a)
	return t.end()
}

// WithVolumeFailure records that podd has prepared no volume, because writing the journal failed
// with err. Without a journal, the directory of the pod would be an orphan.
func (s *State) WithVolumeFailure(err error) *State {
	n := s.PlanInput.History.VolumesFailure.Count + 1
	newState := s.clone()
	newState.PlanInput.History.VolumesFailure = plan.Failure{Count: n, Message: err.Error(), RetryAt: s.PlanInput.Now.Add(plan.RetryDelay(n))}
	return newState
}

// RetryVolumes makes the retries of failed operations on volumes due now.
func (s *State) RetryVolumes() *State {
	t := s.begin(time.Time{})
	t.retryVolumes()
	return t.State
}

// IsEndRecorded reports whether the desired version has finished and its end is on disk.
func (s *State) IsEndRecorded() bool {
	fin := s.PlanInput.History.Finished
	return s.PlanInput.Desired != nil && fin != nil && s.Records[fin.UID].Finished != nil && s.WriteError(fin.UID) == nil
}

// NeedsReport reports whether decision d differs from the last reported decision, or the result of
// IsEndRecorded has changed since the last report.
func (s *State) NeedsReport(d plan.Decision) bool {
	return s.IsEndRecorded() != s.isEndReported || !reflect.DeepEqual(d, s.ReportedDecision)
}

// WithReported returns s with decision d as the last reported decision. It also records the result
// of IsEndRecorded, which the report contains.
func (s *State) WithReported(d plan.Decision) *State {
	newState := s.clone()
	if d.Rule != s.ReportedDecision.Rule {
		newState.DecisionSince = s.PlanInput.Now
	}
	newState.ReportedDecision, newState.isEndReported = d, s.IsEndRecorded()
	return newState
}
