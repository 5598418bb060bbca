package reconcile

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/state"
)

// diskTimeout is how long a worker waits for a write. After that time, the worker continues without
// the journal, because an eviction, a deadline or a node shutdown must not depend on the disk.
const diskTimeout = time.Second

// errSlowDisk is the error of a write while an earlier write has not returned.
var errSlowDisk = errors.New("an earlier write to the disk has not finished")

// A slowWrite is a write that did not return within diskTimeout. Until it returns, the worker
// starts no other write, because an older journal could then replace a newer journal.
type slowWrite struct {
	uid       types.UID
	isDurable bool // see state.Write
	// isStale reports whether the journal of uid has changed since the write began.
	isStale bool
	done    <-chan error
}

// resultChannel returns the channel that receives the result of the write; nil if s is nil.
func (s *slowWrite) resultChannel() <-chan error {
	if s == nil {
		return nil
	}
	return s.done
}

// writeAndApply writes journal j and applies the result to the state. If the write takes longer
// than diskTimeout, it counts as failed with errSlowDisk. When such a write returns, endWrite
// applies its result.
func (w *worker) writeAndApply(j state.Write) {
	uid := j.Record.UID
	err := w.write(j)
	w.applyTransition(w.state.ApplyWrite(uid, j.Durable, err, errors.Is(err, errSlowDisk), time.Now()))
}

// write writes journal j. It returns errSlowDisk if the disk does not respond within diskTimeout,
// or if an earlier write has not returned.
func (w *worker) write(j state.Write) error {
	uid := j.Record.UID
	if w.slowWrite != nil {
		w.slowWrite.isStale = w.slowWrite.isStale || w.slowWrite.uid == uid
		return fmt.Errorf("writing the journal of pod %s: %w", w.key, errSlowDisk)
	}
	write := w.journals.Write
	if w.state.UnreadableJournals[uid] != "" {
		write = w.journals.ReplaceUnreadable
	}
	done := make(chan error, 1)
	// This goroutine may outlive the worker, because a call that waits for a disk cannot be
	// interrupted.
	go func() { done <- write(j.Record, j.Durable) }()
	timer := time.NewTimer(diskTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		w.slowWrite = &slowWrite{uid: uid, isDurable: j.Durable, done: done}
		return fmt.Errorf("writing the journal of pod %s: %w", w.key, errSlowDisk)
	}
}

// retryWrites repeats the failed writes that are due, unless a slow write is in progress.
func (w *worker) retryWrites(now time.Time) {
	if w.slowWrite == nil {
		w.applyTransition(w.state.RetryWrites(now))
	}
}

// nextRetry returns the earlier of wakeAt and the next retry of a failed write; zero means never.
// During a slow write it returns wakeAt, because the end of that write wakes the worker.
func (w *worker) nextRetry(wakeAt time.Time) time.Time {
	if w.slowWrite != nil {
		return wakeAt
	}
	return w.state.NextRetry(wakeAt)
}

// endWrite applies the result err of the slow write, which has returned. Then the journals that
// have changed during the write must be written again at once.
func (w *worker) endWrite(err error) {
	s := w.slowWrite
	w.slowWrite = nil
	if err != nil || !s.isStale {
		w.applyTransition(w.state.ApplyWrite(s.uid, s.isDurable, err, errors.Is(err, errSlowDisk), time.Now()))
	}
	except := s.uid
	if err == nil {
		except = ""
	}
	w.state = w.state.MakeRetriesDue(except)
	if err == nil {
		w.state = w.state.RetryVolumes()
	}
}

// finishWrites waits up to diskTimeout for a slow write. If the write returns, finishWrites also
// writes the journals that have changed in the meantime.
func (w *worker) finishWrites() {
	if w.slowWrite == nil {
		return
	}
	timer := time.NewTimer(diskTimeout)
	defer timer.Stop()
	select {
	case err := <-w.slowWrite.done:
		w.endWrite(err)
		w.retryWrites(time.Now())
	case <-timer.C:
		w.log.Warn("writing the journal of a pod failed because the disk does not respond; stopping without writing the journal", "uid", w.slowWrite.uid)
	}
}
