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
	// Address is the address of the bus; "" means the system bus.
	Address string
	// DropInPath is the path of the drop-in file for the configuration of logind.
	DropInPath string
	// StopTimeout is the maximum time that stopping all pods takes.
	StopTimeout time.Duration
	// Begin stops the pods within a maximum time. It returns when all pods have stopped or ctx is
	// done. If ctx is done, the pods continue to stop, and Begin may be called again.
	Begin func(ctx context.Context, within time.Duration) error
	// Cancel starts the pods again.
	Cancel func(ctx context.Context) error
	// IsInProgress reports whether this or an earlier podd process has called Begin for a shutdown
	// that was not cancelled.
	IsInProgress func() bool
	Log          *slog.Logger
}

// The wait between attempts to connect starts at twice firstWait and doubles up to maxWait. After a
// connection that lasted longer than maxWait, the wait is firstWait.
const (
	firstWait = time.Second
	maxWait   = time.Minute
)

// Run watches logind for host shutdowns until ctx is done. It connects again if a connection is
// lost.
func Run(ctx context.Context, o Options) error {
	w := &watcher{Options: o}
	defer w.releaseLock()
	wait, lastLogged := firstWait, ""
	for {
		startTime := time.Now()
		err := w.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if lastLogged != err.Error() {
			lastLogged = err.Error()
			o.Log.Warn("watching logind failed; retrying; until a retry succeeds, a host shutdown waits for pods only if podd's systemd unit runs \"podd shutdown\"", "err", err)
		}
		if wait = min(2*wait, maxWait); time.Since(startTime) > maxWait {
			wait, lastLogged = firstWait, ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// A watcher watches logind. It uses one connection to the bus at a time.
type watcher struct {
	Options
	maxDelay    time.Duration      // maximum time for which logind waits for the pods
	lock        *os.File           // may be nil
	beginDone   chan struct{}      // closed when Begin has returned; nil if Begin was not called
	cancelBegin context.CancelFunc // cancels the context of Begin
}

// watch watches logind on one connection. It returns when the connection is lost or ctx is done. It
// keeps the delay lock when the connection is lost, because the lock remains valid without the
// connection.
func (w *watcher) watch(ctx context.Context) error {
	b, err := openBus(ctx, w.Address)
	if err != nil {
		return err
	}
	defer b.conn.Close()
	defer w.stopWaiting()
	isPreparing, err := b.isPreparing(ctx)
	if err != nil {
		return err
	}
	if isPreparing { // take no lock, because logind refuses locks during a shutdown
		if w.maxDelay, err = b.readMaxDelay(ctx); err != nil {
			return err
		}
		w.maxDelay = min(w.maxDelay, w.StopTimeout)
	} else if err := w.inhibit(ctx, b); err != nil {
		return err
	}
	w.handleShutdown(ctx, b, isPreparing)
	w.Log.Info("watching logind for host shutdowns", "maxDelay", w.maxDelay)
	return w.handleEvents(ctx, b)
}

// inhibit raises the maximum delay and then takes a lock. If w already has a lock, inhibit releases
// that lock.
func (w *watcher) inhibit(ctx context.Context, b *bus) error {
	delay, err := w.raiseMaxDelay(ctx, b)
	if delay == 0 && err != nil {
		return err
	}
	if err != nil {
		w.Log.Warn("raising logind's maximum inhibitor delay failed; in a host shutdown, pods have less time to stop than their grace periods", "maxDelay", delay, "err", err)
	}
	w.maxDelay = min(delay, w.StopTimeout)
	lock, err := b.inhibit(ctx)
	if err != nil {
		return err
	}
	w.releaseLock()
	w.lock = lock
	return nil
}

// handleEvents handles the start and the cancellation of host shutdowns until the connection is
// lost or ctx is done.
func (w *watcher) handleEvents(ctx context.Context, b *bus) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.beginDone:
			w.stopWaiting()
			w.releaseLock()
		case <-b.conn.Context().Done():
			return errors.New("the system bus closed the connection")
		case <-b.wake:
			isPreparing, err := b.isPreparing(ctx)
			if err != nil {
				return err
			}
			w.handleShutdown(ctx, b, isPreparing)
		}
	}
}

// handleShutdown stops the pods if a host shutdown has started, and starts the pods again if the
// shutdown was cancelled. inProgress reports whether logind is preparing a shutdown.
func (w *watcher) handleShutdown(ctx context.Context, b *bus, inProgress bool) {
	switch {
	case inProgress && w.beginDone == nil:
		w.startStoppingPods(ctx)
	case !inProgress && (w.beginDone != nil || w.lock == nil || w.IsInProgress()) && !b.isStopping(ctx):
		w.cancelShutdown(ctx, b)
	}
}

// cancelShutdown starts the pods again if this or an earlier watcher has stopped the pods. It then
// takes a lock for the next shutdown, unless w already has a lock.
func (w *watcher) cancelShutdown(ctx context.Context, b *bus) {
	w.stopWaiting()
	if w.IsInProgress() {
		if err := w.Cancel(ctx); err != nil {
			w.Log.Error("the host shutdown was cancelled, but starting the pods again failed; run \"podd shutdown --cancel\"", "err", err)
		}
	}
	if w.lock == nil {
		var err error
		if w.lock, err = b.inhibit(ctx); err != nil {
			w.Log.Warn("taking an inhibitor lock failed; the next host shutdown does not wait for pods", "err", err)
		}
	}
}

// startStoppingPods starts a goroutine that calls Begin. A later call of stopWaiting stops the
// goroutine.
func (w *watcher) startStoppingPods(ctx context.Context) {
	ctx, w.cancelBegin = context.WithCancel(ctx)
	stopped := make(chan struct{})
	w.beginDone = stopped
	go func() {
		defer close(stopped)
		if err := w.Begin(ctx, w.maxDelay); err != nil && ctx.Err() == nil {
			w.Log.Error("stopping pods failed; the host shutdown continues", "err", err)
		}
	}()
}

// stopWaiting cancels the call of Begin, if there is one, and waits until Begin has returned. The
// pods continue to stop.
func (w *watcher) stopWaiting() {
	if w.beginDone == nil {
		return
	}
	w.cancelBegin()
	<-w.beginDone
	w.beginDone = nil
}

// releaseLock releases the lock, if there is one, so that logind continues the shutdown.
func (w *watcher) releaseLock() {
	if w.lock != nil {
		w.lock.Close()
		w.lock = nil
	}
}
