// Package podrunner runs the pods of one run to completion in a root directory of their own,
// without sources and endpoints. It also removes runs of a podd that was killed.
package podrunner

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/cgroup"
	"podd/reconcile/effect"
	"podd/reconcile/eviction"
	"podd/reconcile/node"
	"podd/reconcile/render"
	"podd/reconcile/volume/claim"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/safepath"
)

// A Runner runs the pods of one root directory.
type Runner struct {
	log      *slog.Logger
	client   *cri.Client
	dir      string // root directory
	instance *reconcile.Instance
	node     render.Node
	address  *node.AddressFollower
	observer *cri.Observer
	pods     *eviction.ReportCache
	router   *reconcile.Router
	sets     chan *manifest.Set // capacity 1; the newest set
	observed chan struct{}      // closed when the router has a complete snapshot
	failed   chan struct{}      // closed when all goroutines have stopped, after err is set
	err      error
	cancel   context.CancelFunc // nil until Begin
}

// Options are the options of a Runner. All fields are required.
type Options struct {
	Config         *config.Config
	Dir            string // root directory, which the Runner locks
	Client         *cri.Client
	LogsAndCgroups effect.LogsAndCgroups
	Publish        func(reconcile.Change) // must not block
	Log            *slog.Logger
}

// New returns a Runner of the pods in a directory, and locks the directory. It runs no pods
// before Begin.
func New(o Options) (*Runner, error) {
	cfg, log := o.Config, o.Log
	if _, err := host.ReadDNS(cfg.ResolvConf); err != nil {
		return nil, err
	}
	instance, err := reconcile.LockRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	addresses := host.FollowAddresses(cfg, "", log)
	on, err := host.RenderNode(cfg, instance, addresses.Addresses())
	if err != nil {
		instance.Close()
		return nil, err
	}
	observer := o.Client.NewObserver(cri.ObserverOptions{Instance: instance.ID, Logger: log})
	pods := eviction.NewReportCache()
	router := reconcile.NewRouter(reconcile.Options{
		Effects: wiring.NewEffects(wiring.EffectOptions{
			Config: cfg, Root: o.Dir, Runtime: o.Client, Node: on, LogsAndCgroups: o.LogsAndCgroups, MakeCgroup: cgroup.Make,
		}),
		Journals: rootdir.Journals(o.Dir), Log: log,
		Refresh: observer.Refresh, Render: on, MaxBackoff: cfg.MaxRestartPeriod,
		Limits: admission.Limits{Features: host.Features(cfg)}, KeptClaims: claim.Store{Root: rootdir.Claims(cfg.RootDir)}.Kept,
		Publish: func(c reconcile.Change) {
			pods.Apply(c)
			o.Publish(c)
		},
	})
	return &Runner{
		log: log, client: o.Client, dir: o.Dir, instance: instance, node: on, address: addresses,
		observer: observer, pods: pods, router: router,
		sets: make(chan *manifest.Set, 1), observed: make(chan struct{}), failed: make(chan struct{}),
	}, nil
}

// Begin starts the goroutines of the runner. They stop when ctx is done or Close is called.
// It must be called at most once.
func (r *Runner) Begin(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(ctx)
	nodes := r.client.NewNodeObserver(cri.NodeObserverOptions{Logger: r.log})
	snapshots, states, addresses := make(chan runtime.Snapshot), make(chan runtime.Node), make(chan node.Addresses)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return r.router.Run(ctx, reconcile.Inputs{Sets: r.sets, Snapshots: snapshots, Nodes: states, Addresses: addresses})
	})
	limits := eviction.NewStorageLimiter(eviction.StorageOptions{
		Disk: rootdir.PodDirs(r.dir), Node: r.node, Pods: r.pods.All, Router: r.router, Layers: r.client, Log: r.log,
		Report: func(_ context.Context, all []manifest.Problem) {
			for _, p := range all {
				r.log.Error("storage limits are not fully enforced", "err", p.Message)
			}
		},
	})
	group.Go(func() error { return limits.Run(ctx) })
	first := sync.OnceFunc(func() { close(r.observed) })
	pass := wiring.Send(ctx, snapshots)
	group.Go(func() error {
		return wiring.IgnoreCanceled(r.observer.Run(ctx, func(s runtime.Snapshot) {
			pass(s)
			if s.Whole {
				first()
			}
		}))
	})
	group.Go(func() error { return wiring.IgnoreCanceled(nodes.Run(ctx, wiring.Send(ctx, states))) })
	group.Go(func() error { r.address.Run(ctx, wiring.Send(ctx, addresses)); return nil })
	go func() { // Close waits for this goroutine
		defer close(r.failed)
		r.err = group.Wait()
	}()
}

// SetDesired sets the pods that should run. It does not block. Only one goroutine may call
// it.
func (r *Runner) SetDesired(s *manifest.Set) {
	select {
	case <-r.sets: // replaced before it was read
	default:
	}
	r.sets <- s
}

// Down stops all pods with their grace periods, starts no more, and returns when all pods are
// removed.
func (r *Runner) Down(ctx context.Context) error { return r.router.Down(ctx) }

// ForceStop reduces the grace periods of pods that stop now or later to zero.
func (r *Runner) ForceStop(ctx context.Context) error { return r.router.ForceStop(ctx) }

// Failed is closed when the runner has failed or stopped. Err then returns the error.
func (r *Runner) Failed() <-chan struct{} { return r.failed }

// Err returns why the runner failed, or nil. It must not be called before Failed is closed.
func (r *Runner) Err() error { return r.err }

// Close stops the runner and unlocks the directory. The pods keep running.
func (r *Runner) Close() {
	if r.cancel != nil {
		r.cancel()
		<-r.failed
	}
	r.instance.Close()
}

// Remove removes the directory. All pods must have been removed before.
func (r *Runner) Remove(ctx context.Context) error {
	parent, err := safepath.Open(filepath.Dir(r.dir))
	if err != nil {
		return fmt.Errorf("removing %s: %w", r.dir, err)
	}
	defer parent.Close()
	if err := parent.RemoveAll(ctx, filepath.Base(r.dir)); err != nil {
		return fmt.Errorf("removing %s: %w", r.dir, err)
	}
	return nil
}
