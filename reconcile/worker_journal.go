package reconcile

import (
	"cmp"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/runtime"
)

// failedWrite is a journal that could not be written. The disk has an older one, or perhaps
// the newer one if only the sync failed.
type failedWrite struct {
	plan.Failure
	lasting bool // one of these must survive a power cut
}

// tryWriteJournal writes a journal that nothing waits for. A write that fails is retried
// until it succeeds.
func (w *worker) tryWriteJournal(uid types.UID, hash string) {
	_ = w.writeJournal(uid, hash) // see failedWrite
}

// writeJournal writes the journal of one UID. It waits for the disk if that journal, or the
// one that it replaces, must survive a power cut, but see diskPatience. After an error,
// retryWrites repeats the write.
func (w *worker) writeJournal(uid types.UID, hash string) error {
	before, failed := w.past[uid], w.unwritten[uid]
	j := w.journalOf(uid, hash)
	dir := w.dir(uid)
	dir.Hash = hash
	w.setDir(dir)
	w.past = with(w.past, uid, j)
	lasting := j.lasting() || before.lasting() || failed.lasting
	err := w.write(j, lasting)
	w.recordWrite(uid, lasting, err)
	return err
}

// recordWrite records the outcome of a write. A failure is logged once, until a write
// succeeds.
func (w *worker) recordWrite(uid types.UID, lasting bool, err error) {
	failed, was := w.unwritten[uid]
	if err == nil {
		delete(w.unreadable, uid)
		if was {
			w.log.Info("journal written", "uid", uid)
			delete(w.unwritten, uid)
		}
		return
	}
	if failed.Message != err.Error() {
		w.log.Warn("writing the journal failed; retrying", "uid", uid, "err", err)
		if p := w.in.Desired; p != nil && p.UID == uid && !errors.Is(err, errSlow) {
			w.events = append(w.events, event.On(p, w.in.Now).Warning("FailedSync", "", err.Error()))
		}
	}
	now := time.Now()
	if !now.Before(failed.Until) {
		failed.Count++
		failed.Until = now.Add(plan.RetryDelay(failed.Count))
	}
	failed.Message, failed.lasting = err.Error(), lasting
	w.unwritten = with(w.unwritten, uid, failed)
}

// retryWrites repeats the failed writes that are due.
func (w *worker) retryWrites(now time.Time) {
	if w.writing != nil {
		return
	}
	for uid, failed := range w.unwritten {
		if !w.isRemoving(uid) && !now.Before(failed.Until) {
			w.tryWriteJournal(uid, w.past[uid].Hash)
		}
	}
}

// nextRetry returns the earlier of at and the next retry of a write; zero means never.
func (w *worker) nextRetry(at time.Time) time.Time {
	if w.writing != nil {
		return at // its end wakes the worker
	}
	for uid, failed := range w.unwritten {
		if !w.isRemoving(uid) && (at.IsZero() || failed.Until.Before(at)) {
			at = failed.Until
		}
	}
	return at
}

// isRemoving reports whether the directory of a UID is being removed. Then no journal is
// written, because that would create the directory again.
func (w *worker) isRemoving(uid types.UID) bool {
	_, busy := w.flights[plan.RemoveDir{UID: uid}.Subject()]
	return busy
}

// journalOf returns the journal of one UID.
func (w *worker) journalOf(uid types.UID, hash string) journal {
	j := w.past[uid]
	if j.Hash != hash {
		j = journal{Taken: j.Taken}
	}
	j.Key, j.UID, j.Hash = w.key, uid, hash
	j.Stopping = nil
	if s := w.in.History.Stopping; s != nil {
		if inc := runtime.FindSandbox(w.in.Observed, s.SandboxID); inc != nil && inc.UID == uid {
			j.Stopping = s
		}
	}
	j.Terminations = w.endingsOf(uid)
	if p := w.in.Desired; p != nil && p.UID == uid && p.Hash == hash {
		j.StartTime, j.started, j.Finished = w.startTime, w.in.History.StartTime, cmp.Or(w.finishing, w.in.History.Finished)
		j.Containers = map[string]journalEntry{}
		j.Probed, j.Sizes = journaledProbes(w.in.History.Probed), w.in.History.Sizes
		j.Ephemeral = w.uncreatedEphemeral()
		for name, h := range w.in.History.Containers {
			j.Containers[name] = journalEntry{
				Attempt: h.Attempt, Skipped: h.Attempt - min(h.Restarts, h.Attempt), LastExit: h.LastExit, RestartID: h.RestartID, PostStart: h.PostStart,
			}
		}
	}
	j.Volumes = w.dir(uid).Volumes
	return j
}

// reread is the result of reading a journal again that could not be read.
type reread struct {
	uid     types.UID
	journal *journal // nil if a user removed it
}

// applyReread uses a journal that a user repaired or removed. If anything was done for its
// pod since, the history of the worker is newer and the journal is ignored.
func (w *worker) applyReread(found reread) {
	_, written := w.past[found.uid]
	p := w.order.desired
	if w.unreadable[found.uid] == nil || written || p == nil || p.UID != found.uid || len(w.in.Observed) > 0 {
		return
	}
	w.log.Info("journal can be read again, or was removed", "uid", found.uid)
	delete(w.unreadable, found.uid)
	if j := found.journal; j != nil {
		w.past = with(w.past, j.UID, *j)
		w.setDir(plan.Dir{UID: j.UID, Hash: j.Hash, Volumes: j.Volumes})
		w.setVersion(p)
	}
}
