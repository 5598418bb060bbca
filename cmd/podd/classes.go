package main

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
)

// classKeeper limits the cgroups that pods lie in: a class gets the cpu shares
// that its pods ask for, and all together what is not reserved.
type classKeeper struct {
	limit func(render.Cgroup) error // makes it, too
	log   *slog.Logger
	wake  chan struct{} // has room for one
	told  func(error)   // hears what came of it when that changes; nil: nobody

	mu    sync.Mutex // guards all following fields
	node  render.Node
	ready bool // the runtime said how it names cgroups
	asks  map[types.NamespacedName]int64
	total int64 // of asks
}

func newClassKeeper(node render.Node, limit func(render.Cgroup) error, log *slog.Logger) *classKeeper {
	return &classKeeper{
		limit: limit, log: log, wake: make(chan struct{}, 1), node: node, asks: map[types.NamespacedName]int64{},
	}
}

// take takes what a router publishes. It does not wait.
func (k *classKeeper) take(c reconcile.Change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, driver, ready := k.total, k.node.CgroupDriver, k.ready
	for _, key := range c.Gone {
		k.ask(key, 0)
	}
	for _, r := range c.Reports {
		if r.Pod != nil {
			k.ask(r.Key, request(r))
		}
	}
	if c.Node.CgroupDriver != "" {
		k.node.CgroupDriver = c.Node.CgroupDriver
	}
	k.ready = k.ready || c.Node.Ready
	if k.ready && (!ready || k.total != before || k.node.CgroupDriver != driver) {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

func (k *classKeeper) ask(key types.NamespacedName, milli int64) {
	k.total += milli - k.asks[key]
	if k.asks[key] = milli; milli == 0 {
		delete(k.asks, key)
	}
}

// request is what a pod asks for of that which it is given.
func request(r *reconcile.Report) int64 {
	if r.Pod.Status.Phase == v1.PodSucceeded || r.Pod.Status.Phase == v1.PodFailed {
		return 0
	}
	if len(r.Held) > 0 {
		return render.ClassRequest(r.Held[0].Spec)
	}
	return render.ClassRequest(r.Pod)
}

// run works until ctx is done. What fails is tried again, and told once until it
// is another failure.
func (k *classKeeper) run(ctx context.Context) error {
	written, failed, tries := map[string]render.Cgroup{}, "not yet", 0
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-again.C:
		}
		err := k.write(written)
		if err == nil {
			if failed != "" && k.told != nil {
				k.told(nil)
			}
			failed, tries = "", 0
			again.Stop()
			continue
		}
		if err.Error() != failed {
			failed = err.Error()
			k.log.Warn("pods are not limited together as they should be; podd tries again", "err", err)
			if k.told != nil {
				k.told(err)
			}
		}
		tries++
		again.Reset(plan.RetryDelay(tries))
	}
}

// write brings the cgroups to what they should be, from what was written.
func (k *classKeeper) write(written map[string]render.Cgroup) error {
	k.mu.Lock()
	want := render.ClassCgroups(k.node, k.total)
	k.mu.Unlock()
	var errs []error
	for _, c := range want {
		if reflect.DeepEqual(written[c.Parent], c) {
			continue
		}
		if err := k.limit(c); err != nil {
			errs = append(errs, err)
			continue
		}
		written[c.Parent] = c
	}
	return errors.Join(errs...)
}
