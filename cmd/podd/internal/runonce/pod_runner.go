package runonce

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
	"podd/reconcile/effect"
	"podd/reconcile/eviction"
	"podd/reconcile/node"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/safepath"
)

// A podRunner runs pods in a root directory of its own, without sources and endpoints: the
// pods of a run to completion, or the pods of a run that was killed.
type podRunner struct {
	cfg      *config.Config
	log      *slog.Logger
	client   *cri.Client
	dir      string // root directory
	instance *reconcile.Instance
	render   render.Node
	address  *node.AddressFollower
	router   *reconcile.Router
	sets     chan *manifest.Set // capacity 1; the newest set
	observed chan struct{}      // closed when the router has a complete snapshot
	failed   chan struct{}      // closed when err is set, or begin's ctx is done
	err      error
	cancel   context.CancelFunc // nil until begin
}

var _ runner = (*podRunner)(nil)

// newPodRunner returns a podRunner for the root directory dir, which it owns.
func newPodRunner(cfg *config.Config, dir string, client *cri.Client, log *slog.Logger) (*podRunner, error) {
	if _, err := host.ReadDNS(cfg.ResolvConf); err != nil {
		return nil, err
	}
	instance, err := reconcile.LockRoot(dir)
	if err != nil {
		return nil, err
	}
	addresses := host.FollowAddresses(cfg, "", log)
	on, err := host.RenderNode(cfg, instance, addresses.Addresses())
	if err != nil {
		instance.Close()
		return nil, err
	}
	return &podRunner{
		cfg: cfg, log: log, client: client, dir: dir, instance: instance, render: on, address: addresses,
		sets: make(chan *manifest.Set, 1), observed: make(chan struct{}), failed: make(chan struct{}),
	}, nil
}

// begin starts the runner. wrap returns the collector of leftovers to use instead of the
// default one.
func (m *podRunner) begin(ctx context.Context, publish func(reconcile.Change), wrap func(effect.Leftovers) effect.Leftovers) {
	ctx, m.cancel = context.WithCancel(ctx)
	observer := m.client.NewObserver(cri.ObserverOptions{Instance: m.instance.ID, Logger: m.log})
	nodes := m.client.NewNodeObserver(cri.NodeObserverOptions{Logger: m.log})
	effects := wiring.NewEffects(m.cfg, m.dir, m.client, m.render, nil)
	effects.Leftovers = wrap(effects.Leftovers)
	pods := eviction.NewReportCache()
	m.router = reconcile.NewRouter(reconcile.Options{
		Effects: effects, Journals: rootdir.Journals(m.dir), Log: m.log,
		Refresh: observer.Refresh, Render: m.render, MaxBackoff: m.cfg.MaxRestartPeriod,
		Limits: admission.Limits{Features: host.Features(m.cfg)}, Kept: volume.Claims{Root: rootdir.Claims(m.cfg.RootDir)}.Kept,
		Publish: func(c reconcile.Change) {
			pods.Take(c)
			publish(c)
		},
	})
	snapshots, states, addresses := make(chan runtime.Snapshot), make(chan runtime.Node), make(chan node.Addresses)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return m.router.Run(ctx, reconcile.Inputs{Sets: m.sets, Snapshots: snapshots, Nodes: states, Addresses: addresses})
	})
	limits := eviction.NewStorageLimiter(eviction.StorageOptions{
		Disk: rootdir.PodDirs(m.dir), Node: m.render, Pods: pods.All, Router: m.router, Layers: m.client, Log: m.log,
		Report: func(_ context.Context, all []manifest.Problem) {
			for _, p := range all {
				m.log.Error("storage limits are not fully enforced", "err", p.Message)
			}
		},
	})
	group.Go(func() error { return limits.Run(ctx) })
	first := sync.OnceFunc(func() { close(m.observed) })
	pass := wiring.Send(ctx, snapshots)
	group.Go(func() error {
		return wiring.IgnoreCanceled(observer.Run(ctx, func(s runtime.Snapshot) {
			pass(s)
			if s.Whole {
				first()
			}
		}))
	})
	group.Go(func() error { return wiring.IgnoreCanceled(nodes.Run(ctx, wiring.Send(ctx, states))) })
	group.Go(func() error { m.address.Run(ctx, wiring.Send(ctx, addresses)); return nil })
	go func() { // Close waits for it
		defer close(m.failed)
		m.err = group.Wait()
	}()
}

// SetDesired implements runner.
func (m *podRunner) SetDesired(s *manifest.Set) {
	select {
	case <-m.sets: // replaced before it was read
	default:
	}
	m.sets <- s
}

// Down implements runner.
func (m *podRunner) Down(ctx context.Context) error { return m.router.Down(ctx) }

// ForceStop implements runner.
func (m *podRunner) ForceStop(ctx context.Context) error { return m.router.ForceStop(ctx) }

// Failed implements runner.
func (m *podRunner) Failed() <-chan struct{} { return m.failed }

// Err implements runner.
func (m *podRunner) Err() error { return m.err }

// Close stops the runner, not its pods, and releases the directory.
func (m *podRunner) Close() {
	if m.cancel != nil {
		m.cancel()
		<-m.failed
	}
	m.instance.Close()
}

// remove removes the directory. All pods must have been removed.
func (m *podRunner) remove(ctx context.Context) error {
	parent, err := safepath.Open(filepath.Dir(m.dir))
	if err != nil {
		return fmt.Errorf("removing %s: %w", m.dir, err)
	}
	defer parent.Close()
	if err := parent.RemoveAll(ctx, filepath.Base(m.dir)); err != nil {
		return fmt.Errorf("removing %s: %w", m.dir, err)
	}
	return nil
}
