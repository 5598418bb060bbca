package reconcile

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/state"
)

// diskPatience is how long a worker waits for the disk. Most writes take less. If the disk
// does not respond, the worker continues without the journal, because an eviction, a
// deadline or a node shutdown must not depend on it.
const diskPatience = time.Second

// errSlow is the result of a write that has not ended yet.
var errSlow = errors.New("an earlier write to the disk has not finished")

// slowWrite is a write that did not end within diskPatience. Until it ends, the worker
// starts no other write, so that no journal is replaced by an older one.
type slowWrite struct {
	uid     types.UID
	durable bool
	// stale reports whether the pod has a newer journal by now.
	stale bool
	done  <-chan error
}

// ended returns the channel that receives the result of the write; nil if s is nil.
func (s *slowWrite) ended() <-chan error {
	if s == nil {
		return nil
	}
	return s.done
}

// store writes a journal and waits for that, but no longer than diskPatience. After that
// the write counts as failed with errSlow, and endWrite receives the result.
func (w *worker) store(j state.Write) {
	uid := j.Record.UID
	err := w.write(j)
	w.apply(w.state.Written(uid, j.Durable, err, errors.Is(err, errSlow), time.Now()))
}

func (w *worker) write(j state.Write) error {
	uid := j.Record.UID
	if w.writing != nil {
		w.writing.stale = w.writing.stale || w.writing.uid == uid
		return fmt.Errorf("writing the journal of pod %s: %w", w.key, errSlow)
	}
	write := w.journals.Write
	if w.state.Unreadable[uid] != "" {
		write = w.journals.Supersede
	}
	done := make(chan error, 1)
	// Nothing can end a call that waits for a disk, so this goroutine may outlive the
	// worker.
	go func() { done <- write(j.Record, j.Durable) }()
	timer := time.NewTimer(diskPatience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		w.writing = &slowWrite{uid: uid, durable: j.Durable, done: done}
		return fmt.Errorf("writing the journal of pod %s: %w", w.key, errSlow)
	}
}

// retryWrites repeats the failed writes that are due, unless a slow one is in progress.
func (w *worker) retryWrites(now time.Time) {
	if w.writing == nil {
		w.apply(w.state.RetryWrites(now))
	}
}

// nextRetry returns the earlier of at and the next retry of a write; zero means never. The
// end of a slow write wakes the worker.
func (w *worker) nextRetry(at time.Time) time.Time {
	if w.writing != nil {
		return at
	}
	return w.state.NextRetry(at)
}

// endWrite applies the result of a slow write. The journals that changed in the meantime
// are due now.
func (w *worker) endWrite(err error) {
	s := w.writing
	w.writing = nil
	if err != nil || !s.stale {
		w.apply(w.state.Written(s.uid, s.durable, err, errors.Is(err, errSlow), time.Now()))
	}
	except := s.uid
	if err == nil {
		except = ""
	}
	w.state = w.state.ExpireRetries(except)
	if err == nil {
		w.state = w.state.RetryVolumes()
	}
}

// finishWrites waits for a slow write, and writes the journals that changed in the
// meantime, unless the disk does not respond.
func (w *worker) finishWrites() {
	if w.writing == nil {
		return
	}
	timer := time.NewTimer(diskPatience)
	defer timer.Stop()
	select {
	case err := <-w.writing.done:
		w.endWrite(err)
		w.retryWrites(time.Now())
	case <-timer.C:
		w.log.Warn("the disk does not respond; stopping without writing the journal", "uid", w.writing.uid)
	}
}
