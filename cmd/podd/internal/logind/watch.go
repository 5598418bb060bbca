package logind

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// Options are what Run works with; all but Address are required.
type Options struct {
	// Address of the bus; "" is the system's.
	Address string
	// DropIn is the file by which logind's patience is raised.
	DropIn string
	// Period is how long the pods may take to end, all in all.
	Period time.Duration
	// Begin ends the pods within so long, and returns when all have ended or ctx is
	// done. It may be called again while they do.
	Begin func(ctx context.Context, within time.Duration) error
	// Cancel has them run again; UnderWay says that Begin was called for a shutdown
	// that was not cancelled, be it by an earlier podd.
	Cancel   func(ctx context.Context) error
	UnderWay func() bool
	Log      *slog.Logger
}

// How long until another try: the bus is gone for a moment, or there is none.
const (
	soon = time.Second
	late = time.Minute
)

// Run watches until ctx is done.
func Run(ctx context.Context, o Options) error {
	w := &watcher{Options: o}
	defer w.release()
	wait, told := soon, ""
	for {
		began := time.Now()
		err := w.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if told != err.Error() {
			told = err.Error()
			o.Log.Warn("a shutdown of the machine may not wait for the pods; have podd's unit call podd shutdown", "err", err)
		}
		if wait = min(2*wait, late); time.Since(began) > late {
			wait, told = soon, ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// watcher is one connection's life after the other.
type watcher struct {
	Options
	within time.Duration // that logind waits
	lock   *os.File      // nil: none is held
	ending chan struct{} // closed when the pods have ended; nil: they do not
	cancel context.CancelFunc
}

// watch returns when the connection is lost, or ctx is done. The lock is held on: it is
// no part of the connection.
func (w *watcher) watch(ctx context.Context) error {
	b, err := open(ctx, w.Address)
	if err != nil {
		return err
	}
	defer b.conn.Close()
	defer w.land()
	prepares, err := b.preparing(ctx)
	if err != nil {
		return err
	}
	if prepares { // logind gives no lock any more
		if w.within, err = b.delay(ctx); err != nil {
			return err
		}
		w.within = min(w.within, w.Period)
	} else if err := w.take(ctx, b); err != nil {
		return err
	}
	w.turn(ctx, b, prepares)
	w.Log.Info("a shutdown of the machine waits for the pods", "at most", w.within)
	return w.follow(ctx, b)
}

// take has logind wait, for as long as it does.
func (w *watcher) take(ctx context.Context, b *bus) error {
	within, err := w.raise(ctx, b)
	if within == 0 && err != nil {
		return err
	}
	if err != nil {
		w.Log.Warn("the pods get less than they should when the machine shuts down", "err", err)
	}
	w.within = min(within, w.Period)
	lock, err := b.inhibit(ctx)
	if err != nil {
		return err
	}
	w.release()
	w.lock = lock
	return nil
}

func (w *watcher) follow(ctx context.Context, b *bus) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ending:
			w.land()
			w.release()
		case <-b.conn.Context().Done():
			return errors.New("the system's bus has closed the connection")
		case <-b.wake:
			is, err := b.preparing(ctx)
			if err != nil {
				return err
			}
			w.turn(ctx, b, is)
		}
	}
}

// turn is that the machine goes down, or does not.
func (w *watcher) turn(ctx context.Context, b *bus, down bool) {
	switch {
	case down && w.ending == nil:
		w.begin(ctx)
	case !down && (w.ending != nil || w.lock == nil || w.UnderWay()) && !b.stopping(ctx):
		w.giveUp(ctx, b)
	}
}

// giveUp is that the machine does not go down after all.
func (w *watcher) giveUp(ctx context.Context, b *bus) {
	w.land()
	if w.UnderWay() {
		if err := w.Cancel(ctx); err != nil {
			w.Log.Error("the pods are not run again after a shutdown that was cancelled; podd shutdown --cancel does", "err", err)
		}
	}
	if w.lock == nil {
		var err error
		if w.lock, err = b.inhibit(ctx); err != nil {
			w.Log.Warn("the next shutdown does not wait for the pods", "err", err)
		}
	}
}

// begin ends the pods beside the watching.
func (w *watcher) begin(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	ended := make(chan struct{})
	w.ending = ended
	go func() {
		defer close(ended)
		if err := w.Begin(ctx, w.within); err != nil && ctx.Err() == nil {
			w.Log.Error("not all pods have ended before the machine goes down", "err", err)
		}
	}()
}

// land waits for no pod any more.
func (w *watcher) land() {
	if w.ending == nil {
		return
	}
	w.cancel()
	<-w.ending
	w.ending = nil
}

// release lets the machine go down.
func (w *watcher) release() {
	if w.lock != nil {
		w.lock.Close()
		w.lock = nil
	}
}
