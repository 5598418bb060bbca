package daemon

import (
	"context"
	"errors"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"

	"podd/cmd/podd/internal/daemon/endpoint"
	"podd/cmd/podd/internal/daemon/nodestatus"
	"podd/cmd/podd/internal/daemon/podlog"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/iptables"
	"podd/cmd/podd/internal/podrunner"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/manifest/source"
	"podd/reconcile"
	"podd/reconcile/eviction"
	"podd/reconcile/gc/orphans"
	"podd/reconcile/node"
	"podd/reconcile/render"
	"podd/runtime"
	"podd/server/events"
)

// A task runs until ctx is done.
type task func(ctx context.Context) error

// run runs all parts until ctx is done or a part fails, and returns an error when all parts
// have stopped. The pods keep running.
func (p *parts) run(ctx context.Context) error {
	endpoints, err := endpoint.Open(ctx, p.endpointOptions)
	if err != nil {
		return err
	}
	outer := ctx
	group, ctx := errgroup.WithContext(ctx)
	sets := source.Watch(ctx, p.sources...)
	for _, t := range p.tasks(sets) {
		group.Go(func() error { return t(ctx) })
	}
	for _, serve := range endpoints {
		group.Go(func() error { return serve(ctx) })
	}
	group.Go(func() error {
		if p.router.Ping(ctx) == nil {
			notifySystemd(p.log, systemd.SdNotifyReady)
			p.startup.succeed(p.log)
		}
		return nil // not the error of Ping, because p.router.Run returns this error, too
	})
	err = group.Wait()
	for range sets { // wait until the sources have written their caches, because the caller then unlocks the root directory
	}
	notifySystemd(p.log, stopState(mayContinue(err, context.Cause(outer), p.configLink != nil)))
	return err
}

// tasks returns all tasks except the endpoints. The router receives the pods of the sources from
// the channel sets.
func (p *parts) tasks(sets <-chan *manifest.Set) []task {
	snapshots, nodes := make(chan runtime.Snapshot), make(chan runtime.Node)
	drivers, addresses := make(chan struct{}, 1), make(chan node.Addresses)
	in := reconcile.Inputs{Sets: sets, Snapshots: snapshots, Nodes: nodes, Devices: p.devices.Changed(), Drivers: drivers, Addresses: addresses}
	return []task{
		p.trimmer.Run,
		p.sweepRunOnce,
		p.limitStorage,
		p.pressure.Run,
		p.watchDisk,
		p.watchNode,
		p.prunePullRecords,
		func(ctx context.Context) error { return watchRoot(ctx, p.checkDirs) },
		func(ctx context.Context) error { return p.nodeNamer.run(ctx, p.state.SetNodeNameProblem) },
		func(ctx context.Context) error { return p.dns.Run(ctx, p.state.SetDNSProblem) },
		p.qos.run,
		p.reserved.run,
		func(ctx context.Context) error { return moveSystemProcesses(ctx, p.cfg.SystemCgroup, p.log) },
		p.images.Run,
		p.containers.Run,
		p.removeUnknown,
		p.rotateLogs,
		p.syncIPTables,
		p.writeEvents,
		p.followConfig,
		p.runCluster,
		func(ctx context.Context) error { return runCSIDrivers(ctx, p.csi, drivers) },
		p.shutdown.Run,
		func(ctx context.Context) error { return p.router.Run(ctx, in) },
		func(ctx context.Context) error { p.serveNodeSockets(ctx); return nil },
		func(ctx context.Context) error { p.address.Run(ctx, wiring.NewSender(ctx, addresses)); return nil },
		func(ctx context.Context) error {
			return wiring.IgnoreCanceled(p.podObserver.Run(ctx, wiring.NewSender(ctx, snapshots)))
		},
		func(ctx context.Context) error {
			return wiring.IgnoreCanceled(p.nodeObserver.Run(ctx, wiring.NewSender(ctx, nodes)))
		},
		func(ctx context.Context) error { p.devices.Run(ctx, p.log); return nil },
		p.republish,
	}
}

// republish makes the router publish when the state of the node changes.
func (p *parts) republish(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.state.Changed():
			_ = p.router.Republish(ctx) // Republish fails only when podd stops
		}
	}
}

// sweepInterval is the interval between calls of podrunner.Sweep.
const sweepInterval = time.Minute

// sweepRunOnce removes the pods and directories of podd run --runonce processes that were killed. It
// returns when all are removed or ctx is done.
func (p *parts) sweepRunOnce(ctx context.Context) error {
	runs := podrunner.Dirs{Root: p.cfg.RootDir}
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		if deadRuns, err := runs.ListDead(); err == nil && len(deadRuns) == 0 {
			return nil
		}
		podrunner.Sweep(ctx, p.cfg, runs, p.client, p.log)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// limitStorage evicts pods that exceed their limits of ephemeral storage.
func (p *parts) limitStorage(ctx context.Context) error {
	return eviction.NewStorageLimiter(eviction.StorageOptions{
		Disk: rootdir.PodDirs(p.cfg.RootDir), Node: p.node, Reports: p.reportCache.All, Router: p.router, Layers: p.client, Log: p.log, Restarts: true,
		HasImageDisk:   func(ctx context.Context) (bool, error) { return node.HasImageDisk(ctx, p.client, p.cfg.RootDir) },
		ReportProblems: func(_ context.Context, problems []manifest.Problem) { p.state.SetUnlimitedPods(problems) },
	}).Run(ctx)
}

// watchDisk follows the size of the disk until ctx is done.
func (p *parts) watchDisk(ctx context.Context) error {
	return node.WatchDisk(ctx, node.DiskOptions{
		Capacity: p.node.Capacity, Publish: p.router.SetDiskCapacity, Log: p.log,
		Size: func() (int64, error) { return node.ReadDiskSize(p.cfg.RootDir) },
		Allocatable: func(capacity render.Resources) (render.Resources, error) {
			return host.Allocatable(&p.cfg.Resources, capacity)
		},
	})
}

// watchNode follows the images of the node until ctx is done.
func (p *parts) watchNode(ctx context.Context) error {
	return nodestatus.Watch(ctx, nodestatus.WatchOptions{
		Runtime: p.client, MaxImages: p.cfg.MaxStatusImages, Pulled: p.pulled, Publish: p.state.SetImages, Record: p.record,
	})
}

// pruneInterval is the interval at which podd removes records of images that are no longer on the
// node. The kubelet removes these records together with unused images, at the same interval.
const pruneInterval = 5 * time.Minute

// prunePullRecords removes the records of image pulls whose images are no longer on the node, until ctx
// is done.
func (p *parts) prunePullRecords(ctx context.Context) error {
	if p.pullRecords == nil {
		return nil
	}
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := p.pullRecords.Prune(ctx, p.client); err != nil && ctx.Err() == nil && !errors.Is(err, runtime.ErrUnavailable) {
			p.log.Warn("removing the records of absent images failed; trying again later", "err", err)
		}
	}
}

// removeUnknown removes the logs and the cgroups of unknown pods until ctx is done, if podd adopts the pods
// of a kubelet. Otherwise they may belong to another program, and removeUnknown does nothing.
func (p *parts) removeUnknown(ctx context.Context) error {
	if !p.cfg.Adopt {
		return nil
	}
	o := wiring.NewOrphanOptions(p.cfg, func(took time.Duration) { p.metrics.RecordCgroup("destroy", took) }, p.log)
	o.UnknownUIDs, o.ListPods = p.router.UnknownUIDs, p.client.PodUIDs
	return orphans.New(o).Run(ctx)
}

// rotateLogs rotates the logs of containers, unless that is disabled.
func (p *parts) rotateLogs(ctx context.Context) error {
	return wiring.RotateLogs(ctx, p.cfg, p.client, podlog.NewLister(p.view.Latest), p.log)
}

// writeEvents appends the events to the configured file, if there is one.
func (p *parts) writeEvents(ctx context.Context) error {
	if p.cfg.EventLog == "" {
		return nil
	}
	f := &events.File{Path: p.cfg.EventLog, Log: p.log}
	return f.Run(ctx, p.events)
}

// syncIPTables creates the iptables chains of a node of a cluster, unless that is disabled. Without a
// cluster, podd does not change the network of the host.
func (p *parts) syncIPTables(ctx context.Context) error {
	if p.cfg.Cluster.CreateIPTablesChains {
		iptables.Run(ctx, p.log)
	}
	return nil
}

// runCluster runs the node of the configured cluster, if there is one.
func (p *parts) runCluster(ctx context.Context) error {
	if p.cluster == nil {
		return nil
	}
	return p.cluster.Run(ctx, p.view.Latest)
}
