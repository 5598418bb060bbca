package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/volume"
)

// limitsEvery is how often emptyDirs with a sizeLimit on disk are measured, the
// kubelet's interval. In memory the file system itself keeps the limit.
const limitsEvery = 10 * time.Second

// limitKeeper evicts pods that outgrow a sizeLimit.
type limitKeeper struct {
	root   string           // of the pods
	pods   func() []*v1.Pod // the present ones, with their status
	router *reconcile.Router
	log    *slog.Logger
}

// run works until ctx is done. Without pods that have a limit it does nothing.
func (k *limitKeeper) run(ctx context.Context) error {
	tick := time.NewTicker(limitsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, p := range k.pods() {
			if hasDiskLimit(p) && p.Status.Phase == v1.PodRunning {
				k.keep(ctx, p)
			}
		}
	}
}

// keepLimits is that of the daemon.
func (d *podd) keepLimits(ctx context.Context) error {
	pods := func() []*v1.Pod {
		var all []*v1.Pod
		for _, p := range d.view.latest.View().Pods {
			all = append(all, p.Pod)
		}
		return all
	}
	k := &limitKeeper{root: d.cfg.RootDir, pods: pods, router: d.router, log: d.log}
	return k.run(ctx)
}

// reported are the pods that a router publishes. Safe for concurrent use.
type reported struct {
	mu   sync.Mutex // guards pods
	pods map[types.NamespacedName]*v1.Pod
}

func (r *reported) take(c reconcile.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range c.Gone {
		delete(r.pods, key)
	}
	for _, report := range c.Reports {
		if report.Pod != nil {
			r.pods[report.Key] = report.Pod
		}
	}
}

func (r *reported) all() []*v1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.pods))
}

func hasDiskLimit(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
		e := v.EmptyDir
		return e != nil && e.Medium != v1.StorageMediumMemory && e.SizeLimit != nil && e.SizeLimit.Sign() > 0
	})
}

func (k *limitKeeper) keep(ctx context.Context, p *v1.Pod) {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	used, err := volume.Dir{Root: podsDir(k.root)}.EmptyDirUsage(ctx, &manifest.Pod{Key: key, UID: p.UID, Spec: p})
	if err != nil {
		k.log.Warn("volumes not measured", "pod", key, "err", err)
		return
	}
	for _, v := range p.Spec.Volumes {
		if u, ok := used[v.Name]; ok && u.Bytes > u.Limit {
			// It fails only when podd is ending.
			_ = k.router.Evict(ctx, key, plan.Evict{UID: p.UID, Message: outgrown(v.Name, u)})
			return
		}
	}
}

func outgrown(name string, u volume.Usage) string {
	return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q: it holds %s; raise the limit or write less, an edit starts the pod again",
		name, size(u.Limit), size(u.Bytes))
}

func size(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
