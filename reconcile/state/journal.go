package state

import (
	"cmp"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/runtime"
)

// A FailedWrite is the failure to write the newest journal of a UID. The disk contains an older
// journal or, if only the sync failed, the newest journal.
type FailedWrite struct {
	plan.Failure
	durable bool // whether this journal, or the journal on disk that it replaces, must survive a power cut
}

// addWrite adds the journal of one UID to the journals that the caller must write (Outputs.Writes).
// The write is durable if the new record or the record that it replaces must survive a power cut. A
// failed write is retried until it succeeds.
func (t *transition) addWrite(uid types.UID, hash string) {
	before, failed := t.Records[uid], t.FailedWrites[uid]
	r := t.newRecord(uid, hash)
	dir := t.dir(uid)
	dir.Hash = hash
	t.setDir(dir)
	t.Records = withKey(t.Records, uid, r)
	w := Write{Record: r, Durable: r.isDurable() || before.isDurable() || failed.durable}
	for i, earlier := range t.out.Writes {
		if earlier.Record.UID == uid {
			w.Durable = w.Durable || earlier.Durable
			t.out.Writes[i] = w
			return
		}
	}
	t.out.Writes = append(t.out.Writes, w)
}

// newRecord returns the record of the present state for the version with this UID and hash.
func (t *transition) newRecord(uid types.UID, hash string) Record {
	r := t.Records[uid]
	if r.Hash != hash {
		r = Record{TakenOver: r.TakenOver}
	}
	r.Key, r.UID, r.Hash = t.Key, uid, hash
	r.Stopping = nil
	if s := t.PlanInput.History.Stopping; s != nil {
		if inc := runtime.FindSandbox(t.PlanInput.Observed, s.SandboxID); inc != nil && inc.UID == uid {
			r.Stopping = s
		}
	}
	r.Terminations = t.terminationsOf(uid)
	if p := t.PlanInput.Desired; p != nil && p.UID == uid && p.Hash == hash {
		r.StartTime, r.MonotonicStartTime, r.Finished = t.StartTime, t.PlanInput.History.StartTime, cmp.Or(t.pendingEnd, t.PlanInput.History.Finished)
		if t.waitsForAdmission() && r.Finished == nil {
			r.StartTime, r.MonotonicStartTime = time.Time{}, time.Time{}
		}
		r.Containers = map[string]ContainerRecord{}
		r.ProbeStates, r.Sizes, r.Evictions = recordedProbes(t.PlanInput.History.ProbeStates), t.PlanInput.History.Sizes, t.PlanInput.History.Evictions
		r.Ephemeral = t.uncreatedEphemeral()
		for name, h := range t.PlanInput.History.Containers {
			r.Containers[name] = ContainerRecord{
				Attempt: h.Attempt, Skipped: h.Attempt - min(h.Restarts, h.Attempt), LastExit: h.LastExit, RestartRequestedID: h.RestartRequestedID, PostStart: h.PostStart,
			}
		}
	}
	r.HasVolumes = t.dir(uid).MayHaveVolumes
	return r
}

// recordedProbes returns the probe states to store in a record, by container ID: the states of
// containers with a probe that has a result. It returns nil if there are none.
func recordedProbes(all map[string]plan.ContainerProbes) map[string]plan.ContainerProbes {
	var kept map[string]plan.ContainerProbes
	for id, p := range all {
		if p.Startup.Health != "" || p.Liveness.Health != "" || p.Readiness.Health != "" {
			kept = withKey(kept, id, p)
		}
	}
	return kept
}

// terminationsOf returns the terminations of the observed containers of a UID, by container ID;
// nil if there are none.
func (t *transition) terminationsOf(uid types.UID) map[string]plan.Termination {
	var kept map[string]plan.Termination
	for id, e := range t.PlanInput.History.Terminations {
		if inc, _ := runtime.FindContainer(t.PlanInput.Observed, id); inc != nil && inc.UID == uid {
			kept = withKey(kept, id, e)
		}
	}
	return kept
}

// ApplyWrite applies the result err of writing the journal of a UID. durable is Write.Durable. An
// error is logged unless the previous write failed with the same error. A logged error also causes
// an event, unless quiet is set.
func (s *State) ApplyWrite(uid types.UID, durable bool, err error, quiet bool, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	failed, hadFailed := t.FailedWrites[uid]
	if err == nil {
		t.UnreadableJournals = withoutKey(t.UnreadableJournals, uid)
		if hadFailed {
			t.info("journal written", "uid", uid)
			t.FailedWrites = withoutKey(t.FailedWrites, uid)
		}
		return t.end()
	}
	if failed.Message != err.Error() {
		t.warn("writing the journal failed; retrying", "uid", uid, "err", err)
		if p := t.PlanInput.Desired; p != nil && p.UID == uid && !quiet {
			t.addEvents(event.NewSubject(p, now).NewWarningEvent("FailedSync", "", err.Error()))
		}
	}
	if !now.Before(failed.RetryAt) {
		failed.Count++
		failed.RetryAt = now.Add(plan.RetryDelay(failed.Count))
	}
	failed.Message, failed.durable = err.Error(), durable
	t.FailedWrites = withKey(t.FailedWrites, uid, failed)
	return t.end()
}

// WriteError returns the error because of which the newest journal of a UID is not on disk; nil
// if it is on disk.
func (s *State) WriteError(uid types.UID) error {
	if failed, ok := s.FailedWrites[uid]; ok {
		return errors.New(failed.Message)
	}
	return nil
}

// RetryWrites adds the failed writes with a retry that is due to Outputs.Writes.
func (s *State) RetryWrites(now time.Time) (*State, Outputs) {
	if len(s.FailedWrites) == 0 {
		return s, Outputs{}
	}
	t := s.begin(now)
	for uid, failed := range t.FailedWrites {
		if !t.isRemoving(uid) && !now.Before(failed.RetryAt) {
			t.addWrite(uid, t.Records[uid].Hash)
		}
	}
	return t.end()
}

// NextRetry returns the earlier of wake and the next retry of a failed write. A zero time means
// never.
func (s *State) NextRetry(wake time.Time) time.Time {
	for uid, failed := range s.FailedWrites {
		if !s.isRemoving(uid) && (wake.IsZero() || failed.RetryAt.Before(wake)) {
			wake = failed.RetryAt
		}
	}
	return wake
}

// MakeRetriesDue makes all failed writes due now. It omits the write for excludedUID.
func (s *State) MakeRetriesDue(excludedUID types.UID) *State {
	next := s.clone()
	for uid, failed := range s.FailedWrites {
		if uid != excludedUID {
			failed.RetryAt = time.Time{}
			next.FailedWrites = withKey(next.FailedWrites, uid, failed)
		}
	}
	return next
}

// isRemoving reports whether the directory of a UID is being removed. During the removal no journal
// may be written, because writing a journal would create the directory again.
func (s *State) isRemoving(uid types.UID) bool {
	_, removing := s.PlanInput.InFlight[plan.RemoveDir{UID: uid}.Subject()]
	return removing
}

// LacksDir reports whether PlanInput.PodDirs contains no directory of a UID, or only a directory
// whose version is unknown.
func (s *State) LacksDir(uid types.UID) bool { return s.dir(uid).Hash == "" }

// WithInFlight returns s with inFlight as the actions in progress, by subject.
func (s *State) WithInFlight(inFlight map[string]plan.Action) *State {
	next := s.clone()
	next.PlanInput.InFlight = inFlight
	return next
}

// setDir adds d to PlanInput.PodDirs, or replaces the directory with the same UID.
func (t *transition) setDir(d plan.PodDir) {
	dirs := make([]plan.PodDir, 0, len(t.PlanInput.PodDirs)+1)
	for _, have := range t.PlanInput.PodDirs {
		if have.UID != d.UID {
			dirs = append(dirs, have)
		}
	}
	t.PlanInput.PodDirs = append(dirs, d)
}

// dropDir removes the directory that action a has removed, and its record, from the state.
func (t *transition) dropDir(a plan.RemoveDir) {
	var dirs []plan.PodDir
	for _, have := range t.PlanInput.PodDirs {
		if have.UID != a.UID {
			dirs = append(dirs, have)
		}
	}
	t.PlanInput.PodDirs, t.Records, t.FailedWrites = dirs, withoutKey(t.Records, a.UID), withoutKey(t.FailedWrites, a.UID)
	if t.PlanInput.Desired != nil && t.PlanInput.Desired.UID == a.UID {
		t.PlanInput.History.VolumesReady = false
	}
}
