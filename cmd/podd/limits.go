package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/collect"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/runtime"
)

// limitsEvery is how often what pods have on disk is measured, the kubelet's
// interval.
const limitsEvery = 10 * time.Second

// limitKeeper evicts pods that outgrow a limit of what they have on disk: the
// sizeLimit of an emptyDir, or ephemeral-storage of containers.
type limitKeeper struct {
	root   string           // of the pods
	node   render.Node      // where their logs are, and whose they are
	pods   func() []*v1.Pod // the present ones, with their status
	router evictor
	layers layerTeller
	log    *slog.Logger
	untold bool // that the runtime does not tell of layers was logged
}

// evictor is the part of a *reconcile.Router that a limitKeeper uses.
type evictor interface {
	Evict(ctx context.Context, key types.NamespacedName, evict plan.Evict) error
}

// layerTeller is the part of a *cri.Client that a limitKeeper uses.
type layerTeller interface {
	WritableLayers(ctx context.Context, instance string, uid types.UID) (layers map[string]int64, told bool, err error)
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
			k.keep(ctx, p)
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
	k := &limitKeeper{root: d.cfg.RootDir, node: d.render, pods: pods, router: d.router, layers: d.client, log: d.log}
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

// keep looks at one pod; one that is Pending may run its init containers.
func (k *limitKeeper) keep(ctx context.Context, p *v1.Pod) {
	volumes, storage := plan.LimitsVolumes(&p.Spec), plan.LimitsStorage(&p.Spec)
	if !volumes && !storage || p.Status.Phase != v1.PodRunning && p.Status.Phase != v1.PodPending {
		return
	}
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	used, err := k.measure(ctx, &manifest.Pod{Key: key, UID: p.UID, Spec: p}, storage)
	if err != nil && ctx.Err() == nil {
		k.log.Warn("what the pod has on disk is not measured", "pod", key, "err", err)
	}
	if why := used.Outgrown(&p.Spec); why != "" {
		// It fails only when podd is ending.
		_ = k.router.Evict(ctx, key, plan.Evict{UID: p.UID, Message: why})
	}
}

// measure tells as much as could be measured, with what was wrong. Without a
// limit of storage only volumes with a limit of their own matter.
func (k *limitKeeper) measure(ctx context.Context, p *manifest.Pod, storage bool) (plan.DiskUse, error) {
	which := func(v *v1.Volume) bool { return plan.OnDisk(v) && (storage || v.EmptyDir.SizeLimit != nil) }
	volumes, err := volume.Dir{Root: podsDir(k.root)}.EmptyDirUsage(ctx, p, which)
	used := plan.DiskUse{Volumes: map[string]int64{}}
	for name, u := range volumes {
		used.Volumes[name] = u.Bytes
	}
	if !storage {
		return used, err
	}
	failed := []error{err}
	used.Logs = map[string]int64{}
	for _, list := range [][]v1.Container{p.Spec.Spec.InitContainers, p.Spec.Spec.Containers, ephemeralContainers(p.Spec)} {
		for i := range list {
			n, err := collect.Usage(ctx, render.LogDirectory(p, k.node), list[i].Name)
			used.Logs[list[i].Name], failed = n, append(failed, err)
		}
	}
	told := false
	// One runtime that does not answer holds up the other pods' limits no longer
	// than a round takes.
	limited, cancel := context.WithTimeout(ctx, limitsEvery)
	defer cancel()
	used.Layers, told, err = k.layers.WritableLayers(limited, k.node.Instance, p.UID)
	if errors.Is(err, runtime.ErrUnimplemented) {
		err = nil
	}
	if err == nil && !told && !k.untold {
		k.untold = true
		k.log.Warn("the runtime does not tell how much containers write to their own file systems; limits of ephemeral-storage bound logs and volumes alone")
	}
	return used, errors.Join(append(failed, err)...)
}
