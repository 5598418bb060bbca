package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/once"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/beneath"
	"podd/runtime/cri"
)

// machine runs pods on a root directory of their own, without sources and
// faces: those of a run to completion, or what a dead one left.
type machine struct {
	cfg      *config.Config
	log      *slog.Logger
	client   *cri.Client
	dir      string // the root
	instance *reconcile.Instance
	render   render.Node
	router   *reconcile.Router
	sets     chan *manifest.Set // the newest
	looked   chan struct{}      // closed when the router knows all that runs
	failed   chan struct{}      // closed when err is set, or begin's ctx is done
	err      error
	cancel   context.CancelFunc // nil until begin
}

var _ once.Machine = (*machine)(nil)

// newMachine takes dir over.
func newMachine(cfg *config.Config, dir string, client *cri.Client, log *slog.Logger) (*machine, error) {
	instance, err := reconcile.Own(dir)
	if err != nil {
		return nil, err
	}
	node, err := renderNode(cfg, instance.ID)
	if err != nil {
		instance.Close()
		return nil, err
	}
	return &machine{
		cfg: cfg, log: log, client: client, dir: dir, instance: instance, render: node,
		sets: make(chan *manifest.Set, 1), looked: make(chan struct{}), failed: make(chan struct{}),
	}, nil
}

// begin starts the machine, with what its leftovers are made to.
func (m *machine) begin(ctx context.Context, publish func(reconcile.Change), keep func(reconcile.Leftovers) reconcile.Leftovers) {
	ctx, m.cancel = context.WithCancel(ctx)
	observer := m.client.NewObserver(cri.ObserverOptions{Instance: m.instance.ID, Logger: m.log})
	node := m.client.NewNodeObserver(cri.NodeObserverOptions{Logger: m.log})
	effects := newEffects(m.cfg, m.dir, m.client, m.render, nil)
	effects.Leftovers = keep(effects.Leftovers)
	pods := &reported{pods: map[types.NamespacedName]*v1.Pod{}}
	m.router = reconcile.NewRouter(reconcile.Options{
		Effects: effects, Journals: journals(m.dir), Log: m.log,
		Refresh: observer.Refresh, Render: m.render, MaxBackoff: m.cfg.MaxRestartPeriod,
		Limits: plan.Limits{Machine: machineOf(m.cfg)}, Kept: volume.Claims{Root: claimsDir(m.cfg)}.Kept,
		Publish: func(c reconcile.Change) {
			pods.take(c)
			publish(c)
		},
	})
	snapshots, nodes := make(chan runtime.Snapshot), make(chan runtime.Node)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return m.router.Run(ctx, reconcile.Inputs{Sets: m.sets, Snapshots: snapshots, Nodes: nodes})
	})
	limits := &limitKeeper{root: m.dir, node: m.render, pods: pods.all, router: m.router, layers: m.client, log: m.log}
	group.Go(func() error { return limits.run(ctx) })
	first := sync.OnceFunc(func() { close(m.looked) })
	pass := send(ctx, snapshots)
	group.Go(func() error {
		return ended(observer.Run(ctx, func(s runtime.Snapshot) {
			pass(s)
			if s.Whole {
				first()
			}
		}))
	})
	group.Go(func() error { return ended(node.Run(ctx, send(ctx, nodes))) })
	go func() { // Close waits for it
		defer close(m.failed)
		m.err = group.Wait()
	}()
}

// Want implements once.Machine.
func (m *machine) Want(s *manifest.Set) {
	select {
	case <-m.sets: // replaced before it was read
	default:
	}
	m.sets <- s
}

// Down implements once.Machine.
func (m *machine) Down(ctx context.Context) error { return m.router.Down(ctx) }

// Hurry implements once.Machine.
func (m *machine) Hurry(ctx context.Context) error { return m.router.Hurry(ctx) }

// Failed implements once.Machine.
func (m *machine) Failed() <-chan struct{} { return m.failed }

// Err implements once.Machine.
func (m *machine) Err() error { return m.err }

// Close stops the machine, not its pods, and gives up the directory.
func (m *machine) Close() {
	if m.cancel != nil {
		m.cancel()
		<-m.failed
	}
	m.instance.Close()
}

// remove removes the directory of a machine that has no pods any more.
func (m *machine) remove(ctx context.Context) error {
	parent, err := beneath.Open(filepath.Dir(m.dir))
	if err != nil {
		return fmt.Errorf("removing %s: %w", m.dir, err)
	}
	defer parent.Close()
	if err := parent.RemoveAll(ctx, filepath.Base(m.dir)); err != nil {
		return fmt.Errorf("removing %s: %w", m.dir, err)
	}
	return nil
}
