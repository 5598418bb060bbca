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

// watch returns when the connection is lost, or ctx is done.
func (w *watcher) watch(ctx context.Context) error {
	b, err := open(ctx, w.Address)
	if err != nil {
		return err
	}
	defer b.conn.Close()
	defer w.release()
	defer w.land()
	if err := w.take(ctx, b); err != nil {
		return err
	}
	prepares, err := property[bool](ctx, b.logind, manager, "PreparingForShutdown")
	if err != nil {
		return err
	}
	if prepares || w.UnderWay() {
		w.turn(ctx, b, prepares)
	}
	w.Log.Info("a shutdown of the machine waits for the pods", "at most", w.within)
	return w.follow(ctx, b)
}

// take has logind wait, for as long as it does.
func (w *watcher) take(ctx context.Context, b *bus) (err error) {
	within, err := w.raise(ctx, b)
	if within == 0 && err != nil {
		return err
	}
	if err != nil {
		w.Log.Warn("the pods get less than they should when the machine shuts down", "err", err)
	}
	w.within = min(within, w.Period)
	w.lock, err = b.inhibit(ctx)
	return err
}

func (w *watcher) follow(ctx context.Context, b *bus) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ending:
			w.land()
			w.release()
		case s, ok := <-b.signals:
			if !ok {
				return errors.New("the system's bus has closed the connection")
			}
			is, err := prepares(s)
			if err != nil {
				return err
			}
			w.turn(ctx, b, is)
		}
	}
}

// turn is that the machine goes down, or does not any more.
func (w *watcher) turn(ctx context.Context, b *bus, down bool) {
	switch {
	case down && w.ending == nil:
		w.begin(ctx)
	case !down && !b.stopping(ctx):
		w.land()
		if err := w.Cancel(ctx); err != nil {
			w.Log.Error("the pods are not run again after a shutdown that was cancelled; podd shutdown --cancel does", "err", err)
		}
		if w.lock == nil {
			var err error
			if w.lock, err = b.inhibit(ctx); err != nil {
				w.Log.Warn("the next shutdown does not wait for the pods", "err", err)
			}
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
