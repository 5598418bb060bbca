package logind

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// Options configures Run. All fields but Address are required.
type Options struct {
	// Address is the address of the bus; "" is the system bus.
	Address string
	// DropIn is the path of the drop-in file.
	DropIn string
	// Period is the total time that the pods may take to stop.
	Period time.Duration
	// Begin stops the pods within a time, and returns when all have stopped or ctx is done.
	// It may be called again before that.
	Begin func(ctx context.Context, within time.Duration) error
	// Cancel starts the pods again. UnderWay reports whether Begin was called for a shutdown
	// that was not cancelled, also by an earlier podd.
	Cancel   func(ctx context.Context) error
	UnderWay func() bool
	Log      *slog.Logger
}

// The waits before the next attempt to connect.
const (
	soon = time.Second
	late = time.Minute
)

// Run watches for shutdowns until ctx is done.
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

// A watcher uses one connection after the other.
type watcher struct {
	Options
	maxDelay time.Duration // how long logind waits
	lock     *os.File      // may be nil
	stopped  chan struct{} // closed when the pods have stopped; nil if they are not being stopped
	cancel   context.CancelFunc
}

// watch returns when the connection is lost or ctx is done. It keeps the lock, which does
// not depend on the connection.
func (w *watcher) watch(ctx context.Context) error {
	b, err := open(ctx, w.Address)
	if err != nil {
		return err
	}
	defer b.conn.Close()
	defer w.stopWaiting()
	prepares, err := b.isPreparing(ctx)
	if err != nil {
		return err
	}
	if prepares { // logind gives no locks during a shutdown
		if w.maxDelay, err = b.maxDelay(ctx); err != nil {
			return err
		}
		w.maxDelay = min(w.maxDelay, w.Period)
	} else if err := w.inhibit(ctx, b); err != nil {
		return err
	}
	w.handleShutdown(ctx, b, prepares)
	w.Log.Info("a shutdown of the machine waits for the pods", "at most", w.maxDelay)
	return w.follow(ctx, b)
}

// inhibit takes a lock after raising the maximum delay.
func (w *watcher) inhibit(ctx context.Context, b *bus) error {
	within, err := w.raiseMaxDelay(ctx, b)
	if within == 0 && err != nil {
		return err
	}
	if err != nil {
		w.Log.Warn("the pods get less than they should when the machine shuts down", "err", err)
	}
	w.maxDelay = min(within, w.Period)
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
		case <-w.stopped:
			w.stopWaiting()
			w.release()
		case <-b.conn.Context().Done():
			return errors.New("the system's bus has closed the connection")
		case <-b.wake:
			is, err := b.isPreparing(ctx)
			if err != nil {
				return err
			}
			w.handleShutdown(ctx, b, is)
		}
	}
}

// handleShutdown handles the start or the cancellation of a shutdown.
func (w *watcher) handleShutdown(ctx context.Context, b *bus, down bool) {
	switch {
	case down && w.stopped == nil:
		w.begin(ctx)
	case !down && (w.stopped != nil || w.lock == nil || w.UnderWay()) && !b.isStopping(ctx):
		w.cancelShutdown(ctx, b)
	}
}

// cancelShutdown handles the cancellation of a shutdown.
func (w *watcher) cancelShutdown(ctx context.Context, b *bus) {
	w.stopWaiting()
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

// begin stops the pods in a goroutine.
func (w *watcher) begin(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	ended := make(chan struct{})
	w.stopped = ended
	go func() {
		defer close(ended)
		if err := w.Begin(ctx, w.maxDelay); err != nil && ctx.Err() == nil {
			w.Log.Error("not all pods have ended before the machine goes down", "err", err)
		}
	}()
}

// stopWaiting cancels begin and waits for it.
func (w *watcher) stopWaiting() {
	if w.stopped == nil {
		return
	}
	w.cancel()
	<-w.stopped
	w.stopped = nil
}

// release lets the shutdown continue.
func (w *watcher) release() {
	if w.lock != nil {
		w.lock.Close()
		w.lock = nil
	}
}
