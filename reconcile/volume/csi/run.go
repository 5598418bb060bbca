package csi

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A volume that something fails with is tried again after a time that doubles.
const (
	firstTry = time.Second
	lastTry  = 2 * time.Minute
)

// mostChores bounds how many volumes of a driver are unstaged at once, and how many are
// kept: when many pods have gone there is much to be done.
const mostChores = 8

// chore is one thing to be done with a volume, by key.
type chore struct {
	key  string
	kind string // of those that are bound together
	do   func(context.Context) error
	bad  func(error) // tells of the first failure
}

// trial is a chore that failed, or is under way.
type trial struct {
	running bool
	wait    time.Duration
	next    time.Time
}

// Run unstages volumes that no pod uses, also those that an earlier podd left, and
// keeps those in use at what their drivers want, until ctx is done.
func (d *Drivers) Run(ctx context.Context) error {
	k := newKeeper(d)
	timer := time.NewTimer(0)
	defer timer.Stop()
	_, registered := d.Registered()
	for ctx.Err() == nil {
		timer.Reset(k.turn(ctx))
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-timer.C:
		case <-registered: // what waited for a driver waits no longer
			_, registered = d.Registered()
			for _, t := range k.trials {
				t.next = time.Time{}
			}
		case r := <-k.done:
			k.learn(r)
		}
	}
	for len(k.running) > 0 {
		k.learn(<-k.done)
	}
	return nil
}

// keeper is the state of one Run, and its goroutine's alone.
type keeper struct {
	*Drivers
	trials  map[string]*trial
	done    chan result
	running map[string]int  // chores, by kind
	doubted map[string]bool // the directories of volumes that were told to be in doubt
}

func newKeeper(d *Drivers) *keeper {
	return &keeper{Drivers: d, trials: map[string]*trial{}, done: make(chan result), running: map[string]int{}}
}

type result struct {
	chore
	err error
}

func (k *keeper) learn(r result) {
	if k.running[r.kind]--; k.running[r.kind] == 0 {
		delete(k.running, r.kind)
	}
	t := k.trials[r.key]
	t.running = false
	if r.err == nil || errors.Is(r.err, context.Canceled) {
		delete(k.trials, r.key)
		return
	}
	if t.wait == 0 {
		r.bad(r.err)
	}
	t.wait = min(max(2*t.wait, firstTry), lastTry)
	t.next = time.Now().Add(t.wait)
}

// turn begins what is to be done and gives when to look again.
func (k *keeper) turn(ctx context.Context) time.Duration {
	chores, due := k.chores()
	wait := k.begin(ctx, chores)
	if !due.IsZero() {
		wait = min(wait, max(time.Until(due), 0))
	}
	return wait
}

// begin begins those that may be under way now, and gives when there may be more.
func (k *keeper) begin(ctx context.Context, chores []chore) time.Duration {
	slices.SortStableFunc(chores, k.longestWaiting)
	wait, wanted := time.Hour, map[string]bool{}
	for _, c := range chores {
		wanted[c.key] = true
		t := k.trials[c.key]
		switch {
		case t != nil && t.running:
			continue
		case t != nil && time.Now().Before(t.next):
			wait = min(wait, max(time.Until(t.next), time.Millisecond))
			continue
		case k.running[c.kind] == mostChores: // the end of one is looked at
			continue
		case t == nil:
			t = &trial{}
			k.trials[c.key] = t
		}
		t.running = true
		k.running[c.kind]++
		go func() { k.done <- result{c, c.do(ctx)} }()
	}
	for key, t := range k.trials {
		if !wanted[key] && !t.running {
			delete(k.trials, key)
		}
	}
	return wait
}

// longestWaiting puts first what was not tried yet: volumes that a driver hangs with,
// again and again, keep none of the others from their turn.
func (k *keeper) longestWaiting(a, b chore) int {
	next := func(c chore) (at time.Time) {
		if t := k.trials[c.key]; t != nil {
			at = t.next
		}
		return at
	}
	return next(a).Compare(next(b))
}

// chores are what is to be done now, and the moment from which there is more.
func (k *keeper) chores() (all []chore, due time.Time) {
	orphans, doubts, err := k.orphans()
	if err != nil {
		k.o.Log.Error("volumes of CSI drivers stay on this machine while it is not known who uses them", "err", err)
	}
	if err != nil || len(doubts) > 0 {
		due = time.Now().Add(lastTry)
	}
	doubted := map[string]bool{}
	for _, s := range doubts {
		if doubted[s.dir] = true; !k.doubted[s.dir] {
			k.o.Log.Error("a volume of a CSI driver stays on this machine while a pod may use it", "driver", s.Driver, "volume", s.Handle, "err", s.err)
		}
	}
	k.doubted = doubted
	for _, s := range orphans {
		all = append(all, chore{
			key: "unstage " + s.dir, kind: "unstage " + s.Driver,
			do: func(ctx context.Context) error { return k.unstage(ctx, s) },
			bad: func(err error) {
				k.o.Log.Warn("a volume of a CSI driver stays on this machine until the driver takes it away", "driver", s.Driver, "volume", s.Handle, "err", err)
			},
		})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.wanted {
		at := k.due(w)
		switch {
		case at.IsZero():
		case at.After(time.Now()):
			if due.IsZero() || at.Before(due) {
				due = at
			}
		default:
			all = append(all, chore{
				key: "keep " + w.target, kind: "keep " + w.Driver,
				do:  func(ctx context.Context) error { return k.keep(ctx, w.target) },
				bad: func(err error) { k.tell(w, err) },
			})
		}
	}
	return all, due
}

// due is when a driver is to be called for a volume in use; zero: never. k.mu is
// held.
func (k *keeper) due(w wish) time.Time {
	past := time.Unix(1, 0)
	switch {
	case w.persistent() && w.Grow && k.grown[w.id()].Capacity < w.Capacity:
		return past
	case w.stale(k.o.Republish):
		return past
	case w.republishes():
		return w.told.at.Add(k.o.Republish)
	}
	return time.Time{}
}
