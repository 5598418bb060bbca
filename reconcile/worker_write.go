package reconcile

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// diskPatience is how long a worker waits for the disk. Most writes take less. If the disk
// does not respond, the worker continues without the journal, because an eviction, a
// deadline or a node shutdown must not depend on it.
const diskPatience = time.Second

// errSlow is the result of a write that has not ended yet.
var errSlow = errors.New("the disk has not finished an earlier write")

// slowWrite is a write that did not end within diskPatience. Until it ends, the worker
// starts no other write, so that no journal is replaced by an older one.
type slowWrite struct {
	uid     types.UID
	lasting bool
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

// write stores a journal and waits for that. If it takes too long, the error is errSlow,
// and endWrite receives the result.
func (w *worker) write(j journal, lasting bool) error {
	if w.writing != nil {
		w.writing.stale = w.writing.stale || w.writing.uid == j.UID
		return fmt.Errorf("remembering pod %s: %w", j.Key, errSlow)
	}
	store := w.journals.write
	if w.unreadable[j.UID] != nil {
		store = w.journals.supersede
	}
	done := make(chan error, 1)
	// Nothing can end a call that waits for a disk, so this goroutine may outlive the
	// worker.
	go func() { done <- store(j, lasting) }()
	timer := time.NewTimer(diskPatience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		w.writing = &slowWrite{uid: j.UID, lasting: lasting, done: done}
		return fmt.Errorf("remembering pod %s: %w", j.Key, errSlow)
	}
}

// endWrite applies the result of a slow write. The journals that changed in the meantime
// are due now.
func (w *worker) endWrite(err error) {
	s := w.writing
	w.writing = nil
	if err != nil || !s.stale {
		w.recordWrite(s.uid, s.lasting, err)
	}
	for uid, failed := range w.unwritten {
		if err == nil || uid != s.uid {
			failed.Until = time.Time{}
			w.unwritten = with(w.unwritten, uid, failed)
		}
	}
	if err == nil {
		w.retryVolumes()
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
		w.log.Warn("the disk does not answer; ending without the journal", "uid", w.writing.uid)
	}
}
