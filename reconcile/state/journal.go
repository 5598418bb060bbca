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
// journal. If only the sync failed, the disk contains the newest journal, but may lose it in a
// power cut.
type FailedWrite struct {
	plan.Failure
	durable bool // whether this journal, or the journal on disk that it replaces, must survive a power cut
}

// addWrite adds the journal of one UID to the journals that the caller must write (Outputs.Writes).
// The write is durable if the new record or the record that it replaces must survive a power cut. A
// failed write is retried until it succeeds.
func (t *transition) addWrite(uid types.UID, hash string) {
	oldRecord, failedWrite := t.Records[uid], t.FailedWrites[uid]
	r := t.newRecord(uid, hash)
	dir := t.dir(uid)
	dir.Hash = hash
	t.setDir(dir)
	t.Records = withKey(t.Records, uid, r)
	w := Write{Record: r, Durable: r.isDurable() || oldRecord.isDurable() || failedWrite.durable}
	for i, otherWrite := range t.outputs.Writes {
		if otherWrite.Record.UID == uid {
			w.Durable = w.Durable || otherWrite.Durable
			t.outputs.Writes[i] = w
			return
		}
	}
	t.outputs.Writes = append(t.outputs.Writes, w)
}

// newRecord returns the record of the current state for the version with this UID and hash.
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

// recordedProbes returns the probe states to store in a record, by container ID. It omits
// containers without a probe that has a result. It returns nil if there are no states to store.
func recordedProbes(probeStates map[string]plan.ContainerProbes) map[string]plan.ContainerProbes {
	var recorded map[string]plan.ContainerProbes
	for id, p := range probeStates {
		if p.Startup.Health != "" || p.Liveness.Health != "" || p.Readiness.Health != "" {
			recorded = withKey(recorded, id, p)
		}
	}
	return recorded
}

// terminationsOf returns the terminations of the observed containers of a UID, by container ID;
// nil if there are none.
func (t *transition) terminationsOf(uid types.UID) map[string]plan.Termination {
	var terminations map[string]plan.Termination
	for id, e := range t.PlanInput.History.Terminations {
		if inc, _ := runtime.FindContainer(t.PlanInput.Observed, id); inc != nil && inc.UID == uid {
			terminations = withKey(terminations, id, e)
		}
	}
	return terminations
}

// ApplyWrite applies the result err of writing the journal of a UID. durable is Write.Durable. An
// error is logged unless the previous write failed with the same error. If quiet is false, a logged
// error also causes an event.
func (s *State) ApplyWrite(uid types.UID, durable bool, err error, quiet bool, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	failedWrite, hadFailed := t.FailedWrites[uid]
	if err == nil {
		t.UnreadableJournals = withoutKey(t.UnreadableJournals, uid)
		if hadFailed {
			t.info("journal written", "uid", uid)
			t.FailedWrites = withoutKey(t.FailedWrites, uid)
		}
		return t.end()
	}
	if failedWrite.Message != err.Error() {
		t.warn("writing the journal failed; retrying", "uid", uid, "err", err)
		if p := t.PlanInput.Desired; p != nil && p.UID == uid && !quiet {
			t.addEvents(event.NewSubject(p, now).NewWarningEvent("FailedSync", "", err.Error()))
		}
	}
	if !now.Before(failedWrite.RetryAt) {
		failedWrite.Count++
		failedWrite.RetryAt = now.Add(plan.RetryDelay(failedWrite.Count))
	}
	failedWrite.Message, failedWrite.durable = err.Error(), durable
	t.FailedWrites = withKey(t.FailedWrites, uid, failedWrite)
	return t.end()
}

// WriteError returns the error because of which the newest journal of a UID is not on disk, or nil
// if the journal is on disk.
func (s *State) WriteError(uid types.UID) error {
	if failedWrite, ok := s.FailedWrites[uid]; ok {
		return errors.New(failedWrite.Message)
	}
	return nil
}

// RetryWrites adds the failed writes that are due to Outputs.Writes.
func (s *State) RetryWrites(now time.Time) (*State, Outputs) {
	if len(s.FailedWrites) == 0 {
		return s, Outputs{}
	}
	t := s.begin(now)
	for uid, failedWrite := range t.FailedWrites {
		if !t.isRemoving(uid) && !now.Before(failedWrite.RetryAt) {
			t.addWrite(uid, t.Records[uid].Hash)
		}
	}
	return t.end()
}

// NextRetry returns the earlier of wakeAt and the next retry of a failed write. A zero time means
// never.
func (s *State) NextRetry(wakeAt time.Time) time.Time {
	for uid, failedWrite := range s.FailedWrites {
		if !s.isRemoving(uid) && (wakeAt.IsZero() || failedWrite.RetryAt.Before(wakeAt)) {
			wakeAt = failedWrite.RetryAt
		}
	}
	return wakeAt
}

// MakeRetriesDue makes all failed writes due now. It omits the write for excludedUID.
func (s *State) MakeRetriesDue(excludedUID types.UID) *State {
	newState := s.clone()
	for uid, failedWrite := range s.FailedWrites {
		if uid != excludedUID {
			failedWrite.RetryAt = time.Time{}
			newState.FailedWrites = withKey(newState.FailedWrites, uid, failedWrite)
		}
	}
	return newState
}

// isRemoving reports whether the directory of a UID is being removed. During the removal no journal
// may be written, because that would create the directory again.
func (s *State) isRemoving(uid types.UID) bool {
	_, isInFlight := s.PlanInput.InFlight[plan.RemoveDir{UID: uid}.Subject()]
	return isInFlight
}

// LacksDir reports whether PlanInput.PodDirs contains no directory of a UID, or only a directory
// whose version is unknown.
func (s *State) LacksDir(uid types.UID) bool { return s.dir(uid).Hash == "" }

// WithInFlight returns s with inFlight as the actions in progress, by subject.
func (s *State) WithInFlight(inFlight map[string]plan.Action) *State {
	newState := s.clone()
	newState.PlanInput.InFlight = inFlight
	return newState
}

// setDir adds d to PlanInput.PodDirs, or replaces the directory with the same UID.
func (t *transition) setDir(d plan.PodDir) {
	dirs := make([]plan.PodDir, 0, len(t.PlanInput.PodDirs)+1)
	for _, dir := range t.PlanInput.PodDirs {
		if dir.UID != d.UID {
			dirs = append(dirs, dir)
		}
	}
	t.PlanInput.PodDirs = append(dirs, d)
}

// setKeepUntil sets plan.PodDir.KeepUntil of a pod's directory. It does nothing if the pod has no
// directory.
func (t *transition) setKeepUntil(uid types.UID, until time.Time) {
	for _, dir := range t.PlanInput.PodDirs {
		if dir.UID == uid {
			dir.KeepUntil = until
			t.setDir(dir)
		}
	}
}

// dropDir removes the directory that action a has removed, and its record, from the state.
func (t *transition) dropDir(a plan.RemoveDir) {
	var dirs []plan.PodDir
	for _, dir := range t.PlanInput.PodDirs {
		if dir.UID != a.UID {
			dirs = append(dirs, dir)
		}
	}
	t.PlanInput.PodDirs, t.Records, t.FailedWrites = dirs, withoutKey(t.Records, a.UID), withoutKey(t.FailedWrites, a.UID)
	if t.PlanInput.Desired != nil && t.PlanInput.Desired.UID == a.UID {
		t.PlanInput.History.VolumesReady = false
	}
}
