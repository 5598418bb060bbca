package csi

import (
	"context"
	"errors"
	"time"

	"podd/manifest/order"
)

// The delay before the next attempt of a task doubles after each failure.
const (
	firstRetryDelay = time.Second
	maxRetryDelay   = 2 * time.Minute
)

// maxTasks is the maximum number of concurrent tasks of each kind and driver. There may be
// many tasks after many pods were removed.
const maxTasks = 8

// A task is an operation on a volume.
type task struct {
	key       string // unique key of the operation and the volume
	kind      string // tasks of the same kind share the limit maxTasks
	do        func(context.Context) error
	onFailure func(error) // called after the first failure
}

// A retry is the state of a task that failed or is running.
type retry struct {
	running bool
	wait    time.Duration
	next    time.Time
}

// Run unstages volumes that no pod uses, even if they were staged before podd started. It publishes
// and expands volumes in use again when necessary. Run returns nil after ctx is done and all tasks
// have finished.
func (d *Drivers) Run(ctx context.Context) error {
	k := newRunner(d)
	timer := time.NewTimer(0)
	defer timer.Stop()
	_, registered := d.Registered()
	for ctx.Err() == nil {
		timer.Reset(k.sync(ctx))
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-timer.C:
		case <-registered: // retry tasks that may have waited for the driver
			_, registered = d.Registered()
			for _, t := range k.retries {
				t.next = time.Time{}
			}
		case r := <-k.done:
			k.handleResult(r)
		}
	}
	for len(k.running) > 0 {
		k.handleResult(<-k.done)
	}
	return nil
}

// A runner is the state of Run. Only the goroutine of Run uses it.
type runner struct {
	*Drivers
	retries map[string]*retry
	done    chan result
	running map[string]int  // number of running tasks by kind
	logged  map[string]bool // directories of volumes for which Run has logged that a pod may use them
}

func newRunner(d *Drivers) *runner {
	return &runner{Drivers: d, retries: map[string]*retry{}, done: make(chan result), running: map[string]int{}}
}

type result struct {
	task
	err error
}

func (k *runner) handleResult(r result) {
	if k.running[r.kind]--; k.running[r.kind] == 0 {
		delete(k.running, r.kind)
	}
	t := k.retries[r.key]
	t.running = false
	if r.err == nil || errors.Is(r.err, context.Canceled) {
		delete(k.retries, r.key)
		return
	}
	if t.wait == 0 {
		r.onFailure(r.err)
	}
	t.wait = min(max(2*t.wait, firstRetryDelay), maxRetryDelay)
	t.next = time.Now().Add(t.wait)
}

// sync starts the tasks that are due. It returns the time until sync must be called again.
func (k *runner) sync(ctx context.Context) time.Duration {
	tasks, due := k.tasks()
	wait := k.begin(ctx, tasks)
	if !due.IsZero() {
		wait = min(wait, max(time.Until(due), 0))
	}
	return wait
}

// begin starts the tasks that may run now. It returns the time until the first delayed task may
// run, at most an hour.
func (k *runner) begin(ctx context.Context, tasks []task) time.Duration {
	order.Stable(tasks, k.longestWaiting)
	wait, published := time.Hour, map[string]bool{}
	for _, c := range tasks {
		published[c.key] = true
		t := k.retries[c.key]
		switch {
		case t != nil && t.running:
			continue
		case t != nil && time.Now().Before(t.next):
			wait = min(wait, max(time.Until(t.next), time.Millisecond))
			continue
		case k.running[c.kind] == maxTasks: // Run calls sync when a running task has finished
			continue
		case t == nil:
			t = &retry{}
			k.retries[c.key] = t
		}
		t.running = true
		k.running[c.kind]++
		go func() { k.done <- result{c, c.do(ctx)} }()
	}
	for key, t := range k.retries {
		if !published[key] && !t.running {
			delete(k.retries, key)
		}
	}
	return wait
}

// longestWaiting orders tasks by the time since which they may run. Tasks without an earlier
// attempt come first. Therefore, volumes for which a driver hangs do not delay other volumes.
func (k *runner) longestWaiting(a, b task) int {
	next := func(c task) (at time.Time) {
		if t := k.retries[c.key]; t != nil {
			at = t.next
		}
		return at
	}
	return next(a).Compare(next(b))
}

// tasks returns the tasks that are due now. due is the time at which the next task is due, or zero
// if no other task is planned.
func (k *runner) tasks() (all []task, due time.Time) {
	orphans, uncertain, err := k.orphans()
	if err != nil {
		k.o.Log.Error("reading which pods use CSI volumes failed; not unstaging any volume", "err", err)
	}
	if err != nil || len(uncertain) > 0 {
		due = time.Now().Add(maxRetryDelay)
	}
	logged := map[string]bool{}
	for _, s := range uncertain {
		if logged[s.dir] = true; !k.logged[s.dir] {
			k.o.Log.Error("volume stays staged because a pod may use it", "driver", s.Driver, "volume", s.Handle, "err", s.err)
		}
	}
	k.logged = logged
	for _, s := range orphans {
		all = append(all, task{
			key: "unstage " + s.dir, kind: "unstage " + s.Driver,
			do: func(ctx context.Context) error { return k.unstage(ctx, s) },
			onFailure: func(err error) {
				k.o.Log.Warn("unstaging a volume failed; retrying", "driver", s.Driver, "volume", s.Handle, "err", err)
			},
		})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.published {
		at := k.due(w)
		switch {
		case at.IsZero():
		case at.After(time.Now()):
			if due.IsZero() || at.Before(due) {
				due = at
			}
		default:
			all = append(all, task{
				key: "keep " + w.target, kind: "keep " + w.Driver,
				do:        func(ctx context.Context) error { return k.update(ctx, w.target) },
				onFailure: func(err error) { k.reportFailure(w, err) },
			})
		}
	}
	return all, due
}

// due returns the time at which w must be published or expanded again, or zero for never.
// The caller must hold k.mu.
func (k *runner) due(w publishedVolume) time.Time {
	past := time.Unix(1, 0)
	switch {
	case w.persistent() && w.MustExpand && k.expanded[w.id()].Capacity < w.Capacity:
		return past
	case w.needsPublish(k.o.Republish):
		return past
	case w.republishes():
		return w.last.at.Add(k.o.Republish)
	}
	return time.Time{}
}
