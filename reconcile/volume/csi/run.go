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
	kind      string // tasks of one kind share the limit maxTasks
	do        func(context.Context) error
	onFailure func(error) // called after the first failure
}

// A retryState is the state of a task that failed or is running.
type retryState struct {
	isRunning   bool
	delay       time.Duration
	nextAttempt time.Time
}

// Run unstages volumes that no pod uses, including volumes that were staged before podd started.
// When necessary, it publishes volumes in use again, and expands them. Run returns nil after ctx is
// done and all tasks have finished.
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
		case <-registered: // retry tasks with a driver that may now be registered
			_, registered = d.Registered()
			for _, t := range k.retries {
				t.nextAttempt = time.Time{}
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
	retries map[string]*retryState
	done    chan taskResult
	running map[string]int  // number of running tasks by kind
	logged  map[string]bool // by directory: whether Run has logged that a pod may use the volume
}

func newRunner(d *Drivers) *runner {
	return &runner{Drivers: d, retries: map[string]*retryState{}, done: make(chan taskResult), running: map[string]int{}}
}

type taskResult struct {
	task
	err error
}

func (k *runner) handleResult(r taskResult) {
	if k.running[r.kind]--; k.running[r.kind] == 0 {
		delete(k.running, r.kind)
	}
	t := k.retries[r.key]
	t.isRunning = false
	if r.err == nil || errors.Is(r.err, context.Canceled) {
		delete(k.retries, r.key)
		return
	}
	if t.delay == 0 {
		r.onFailure(r.err)
	}
	t.delay = min(max(2*t.delay, firstRetryDelay), maxRetryDelay)
	t.nextAttempt = time.Now().Add(t.delay)
}

// sync starts the tasks that are due. It returns the time after which sync must be called again.
func (k *runner) sync(ctx context.Context) time.Duration {
	tasks, nextDue := k.dueTasks()
	delay := k.startTasks(ctx, tasks)
	if !nextDue.IsZero() {
		delay = min(delay, max(time.Until(nextDue), 0))
	}
	return delay
}

// startTasks starts the tasks that may run now. It returns the time until the first delayed task may
// run, but at most one hour.
func (k *runner) startTasks(ctx context.Context, tasks []task) time.Duration {
	order.Stable(tasks, k.compareByWait)
	delay, isTask := time.Hour, map[string]bool{}
	for _, c := range tasks {
		isTask[c.key] = true
		t := k.retries[c.key]
		switch {
		case t != nil && t.isRunning:
			continue
		case t != nil && time.Now().Before(t.nextAttempt):
			delay = min(delay, max(time.Until(t.nextAttempt), time.Millisecond))
			continue
		case k.running[c.kind] == maxTasks: // Run calls sync when a running task has finished
			continue
		case t == nil:
			t = &retryState{}
			k.retries[c.key] = t
		}
		t.isRunning = true
		k.running[c.kind]++
		go func() { k.done <- taskResult{c, c.do(ctx)} }()
	}
	for key, t := range k.retries {
		if !isTask[key] && !t.isRunning {
			delete(k.retries, key)
		}
	}
	return delay
}

// compareByWait orders tasks by the earliest time at which they may run. Tasks that were not
// attempted yet come first. So a task that fails repeatedly, for example because its driver hangs,
// does not delay the tasks of other volumes.
func (k *runner) compareByWait(a, b task) int {
	earliest := func(c task) (at time.Time) {
		if t := k.retries[c.key]; t != nil {
			at = t.nextAttempt
		}
		return at
	}
	return earliest(a).Compare(earliest(b))
}

// dueTasks returns the tasks that are due now, and the time at which the next task becomes due.
// nextDue is zero if no other task is planned.
func (k *runner) dueTasks() (tasks []task, nextDue time.Time) {
	orphans, uncertain, err := k.unusedVolumes()
	if err != nil {
		k.o.Log.Error("finding the CSI volumes that pods use failed; podd unstages no volume", "err", err)
	}
	if err != nil || len(uncertain) > 0 {
		nextDue = time.Now().Add(maxRetryDelay)
	}
	uncertainDirs := map[string]bool{}
	for _, s := range uncertain {
		if uncertainDirs[s.dir] = true; !k.logged[s.dir] {
			k.o.Log.Error("volume stays staged because a pod may use it", "driver", s.Driver, "volume", s.Handle, "err", s.err)
		}
	}
	k.logged = uncertainDirs
	for _, s := range orphans {
		tasks = append(tasks, task{
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
		at := k.nextUpdate(w)
		switch {
		case at.IsZero():
		case at.After(time.Now()):
			if nextDue.IsZero() || at.Before(nextDue) {
				nextDue = at
			}
		default:
			tasks = append(tasks, task{
				key: "keep " + w.target, kind: "keep " + w.Driver,
				do:        func(ctx context.Context) error { return k.updateVolume(ctx, w.target) },
				onFailure: func(err error) { k.reportFailure(w, err) },
			})
		}
	}
	return tasks, nextDue
}

// nextUpdate returns the time at which volume w must be published or expanded again, or the zero
// time if no update is necessary. The caller must hold k.mu.
func (k *runner) nextUpdate(w publishedVolume) time.Time {
	immediately := time.Unix(1, 0)
	switch {
	case w.isPersistent() && w.MustExpand && k.expanded[w.id()].Capacity < w.Capacity:
		return immediately
	case w.needsPublish(k.o.RepublishInterval):
		return immediately
	case w.requiresRepublish():
		return w.lastCall.calledAt.Add(k.o.RepublishInterval)
	}
	return time.Time{}
}
