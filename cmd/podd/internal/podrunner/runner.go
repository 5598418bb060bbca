// Package podrunner runs the pods of one "podd run --runonce" in a separate root directory,
// without sources and without endpoints except the registration of device plugins. It also removes
// the pods of runs whose podd was killed.
package podrunner

import (
	"context"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/cgroup"
	"podd/reconcile/device"
	"podd/reconcile/effect"
	"podd/reconcile/eviction"
	"podd/reconcile/node"
	"podd/reconcile/render"
	"podd/reconcile/rotate"
	"podd/reconcile/volume/claim"
	"podd/runtime"
	"podd/runtime/cri"
)

// A Runner runs the pods of one root directory.
type Runner struct {
	log              *slog.Logger
	client           *cri.Client
	podCIDR          string // as in config.Runtime
	cgroupDriver     string // config.Runtime.ConfiguredCgroupDriver
	dir              string // root directory
	instance         *reconcile.Instance
	node             render.Node
	addressWatcher   *node.AddressWatcher
	observer         *cri.Observer
	reportCache      *eviction.ReportCache
	devices          *device.Manager
	router           *reconcile.Router
	tasks            []func(context.Context) error // parts that only run until their context is done
	desiredSets      chan *manifest.Set            // contains the newest set; capacity 1
	snapshotComplete chan struct{}                 // closed when the router has a complete snapshot
	stopped          chan struct{}                 // closed when all goroutines have stopped and err is set
	err              error
	cancel           context.CancelFunc // nil until Begin
}

// Options configures a Runner. All fields except ServesDevicePlugins are required.
type Options struct {
	Config         *config.Config
	Dir            string // root directory, which the Runner locks
	Client         *cri.Client
	LogsAndCgroups effect.LogsAndCgroups
	Publish        func(reconcile.Change) // must not block
	// MayRotateLog reports whether a log may be rotated now. A rotation removes old files of the log.
	// It must not block.
	MayRotateLog func(ContainerLog) bool
	// ServesDevicePlugins reports whether the Runner serves device plugins in Config.RootDir. The
	// caller must have locked their directory; see LockDevicePlugins.
	ServesDevicePlugins bool
	Log                 *slog.Logger
}

// New locks the directory o.Dir and returns a Runner of the pods in it. It starts no goroutines;
// the caller must call Begin to run pods, and Close to unlock the directory.
func New(o Options) (*Runner, error) {
	cfg, log := o.Config, o.Log
	if _, err := node.ReadDNS(cfg.ResolvConf); err != nil {
		return nil, err
	}
	instance, err := reconcile.LockRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	addresses := host.NewAddressWatcher(cfg, "", log)
	on, err := host.NewRenderNode(cfg, instance, addresses.Addresses(), log)
	if err != nil {
		instance.Close()
		return nil, err
	}
	limits := host.AdmissionLimits(cfg, on.Capacity, on.Allocatable)
	if limits.HostIDs, err = host.ReadHostIDs(cfg); err != nil {
		instance.Close()
		return nil, err
	}
	devices, err := device.Open(rootdir.DevicesPath(o.Dir))
	if err != nil {
		log.Warn("reading the stored device allocations of a run failed; using the allocations in the annotations of containers instead", "err", err)
	}
	observer := o.Client.NewObserver(cri.ObserverOptions{Instance: instance.ID, Logger: log})
	pods := eviction.NewReportCache()
	router := reconcile.NewRouter(reconcile.Options{
		Effects: wiring.NewEffects(wiring.EffectOptions{
			Config: cfg, Root: o.Dir, Runtime: o.Client, Node: on, LogsAndCgroups: o.LogsAndCgroups, CreateCgroup: newCgroupCreator(on, cgroup.Create),
			Devices: devices, PullRecords: wiring.OpenPullRecords(cfg), Log: log,
		}),
		Devices: devices, Journals: rootdir.Journals(o.Dir), Log: log,
		RequestObservation: observer.Refresh, RenderNode: on, MaxBackoff: cfg.MaxRestartPeriod, DeadContainers: host.DeadContainerPolicy(&cfg.Runtime),
		Limits: limits, StoredClaims: claim.Store{Root: rootdir.ClaimsPath(cfg.RootDir)}.ClaimsWithData,
		Publish: func(c reconcile.Change) {
			pods.Apply(c)
			o.Publish(c)
		},
	})
	return &Runner{
		log: log, client: o.Client, podCIDR: cfg.PodCIDR, cgroupDriver: cfg.ConfiguredCgroupDriver, dir: o.Dir, instance: instance, node: on, addressWatcher: addresses,
		observer: observer, reportCache: pods, devices: devices, router: router, tasks: newTasks(o, pods, devices),
		desiredSets: make(chan *manifest.Set, 1), snapshotComplete: make(chan struct{}), stopped: make(chan struct{}),
	}, nil
}

// newTasks returns the parts of a Runner that remove dead containers, rotate logs and serve device
// plugins.
func newTasks(o Options, pods *eviction.ReportCache, devices *device.Manager) []func(context.Context) error {
	list := func() []rotate.Log { return listLogs(pods.All(), o.MayRotateLog) }
	tasks := []func(context.Context) error{
		wiring.NewContainerCollector(&o.Config.Runtime, o.Client, pods, nil, nil, o.Log).Run,
		func(ctx context.Context) error { return wiring.RotateLogs(ctx, o.Config, o.Client, list, o.Log) },
	}
	if o.ServesDevicePlugins {
		plugins := wiring.NewPluginServer(wiring.PluginOptions{
			Root: o.Config.RootDir, Manager: devices, Log: o.Log,
			IgnoredPlugins: []string{registration.CSIPlugin}, // the pods of a run have no CSI volumes
		})
		tasks = append(tasks, plugins.ServeDevicePlugins, func(ctx context.Context) error { plugins.Watch(ctx); return nil })
	}
	return tasks
}

// Begin starts the goroutines of the Runner. The goroutines stop when ctx is done or Close is
// called. Begin must be called at most once.
func (r *Runner) Begin(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(ctx)
	nodes := r.client.NewNodeObserver(cri.NodeObserverOptions{PodCIDR: func() string { return r.podCIDR }, CgroupDriver: r.cgroupDriver, Logger: r.log})
	snapshots, states, addresses := make(chan runtime.Snapshot), make(chan runtime.Node), make(chan node.Addresses)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return r.router.Run(ctx, reconcile.Inputs{Sets: r.desiredSets, Snapshots: snapshots, Nodes: states, Devices: r.devices.Changed(), Addresses: addresses})
	})
	limits := eviction.NewStorageLimiter(eviction.StorageOptions{
		Disk: rootdir.PodDirs(r.dir), Node: r.node, Reports: r.reportCache.All, Router: r.router, Layers: r.client, Log: r.log,
		HasImageDisk: func(ctx context.Context) (bool, error) { return node.HasImageDisk(ctx, r.client, r.dir) },
		ReportProblems: func(_ context.Context, problems []manifest.Problem) {
			for _, p := range problems {
				r.log.Error("podd cannot enforce all storage limits of pods", "err", p.Message)
			}
		},
	})
	group.Go(func() error { return limits.Run(ctx) })
	for _, run := range r.tasks {
		group.Go(func() error { return run(ctx) })
	}
	markComplete := sync.OnceFunc(func() { close(r.snapshotComplete) })
	pass := wiring.NewSender(ctx, snapshots)
	group.Go(func() error {
		return wiring.IgnoreCanceled(r.observer.Run(ctx, func(s runtime.Snapshot) {
			pass(s)
			if s.IsComplete {
				markComplete()
			}
		}))
	})
	group.Go(func() error { return wiring.IgnoreCanceled(nodes.Run(ctx, wiring.NewSender(ctx, states))) })
	group.Go(func() error { r.addressWatcher.Run(ctx, wiring.NewSender(ctx, addresses)); return nil })
	go func() { // Close waits for this goroutine
		defer close(r.stopped)
		r.err = group.Wait()
	}()
}

// SetDesired sets the desired pods. It does not block. It must not be called concurrently.
func (r *Runner) SetDesired(s *manifest.Set) {
	select {
	case <-r.desiredSets: // discard an older set that the router has not received
	default:
	}
	r.desiredSets <- s
}

// Down stops all pods with their grace periods and starts no more pods. It returns when all pods
// have been removed.
func (r *Runner) Down(ctx context.Context) error { return r.router.StopAll(ctx, "the run has ended") }

// ForceStop sets the grace periods to zero, both of pods that are stopping and of pods that stop
// later.
func (r *Runner) ForceStop(ctx context.Context) error { return r.router.ForceStop(ctx) }

// Failed returns a channel that is closed when the Runner has failed or stopped. Err then returns
// the error.
func (r *Runner) Failed() <-chan struct{} { return r.stopped }

// Err returns the error with which the Runner failed, or nil. It must not be called before the
// channel of Failed is closed.
func (r *Runner) Err() error { return r.err }

// Close stops the Runner and unlocks the directory. The pods continue to run.
func (r *Runner) Close() {
	if r.cancel != nil {
		r.cancel()
		<-r.stopped
	}
	r.instance.Close()
}

// RemoveDir removes the directory o.Dir. The caller must first remove all pods with Down.
func (r *Runner) RemoveDir(ctx context.Context) error { return RemoveRun(ctx, r.dir) }
