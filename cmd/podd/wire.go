package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"

	"podd/cmd/podd/internal/cluster"
	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
	"podd/manifest/written"
	"podd/reconcile"
	"podd/reconcile/cgroup"
	"podd/reconcile/collect"
	"podd/reconcile/device"
	"podd/reconcile/pull"
	"podd/reconcile/pull/provider"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/logs"
	"podd/runtime/shim"
	"podd/server"
	"podd/server/events"
	"podd/server/metrics"
	"podd/server/pki"
)

// podd is the daemon wired together: the only place that names concrete types.
type podd struct {
	cfg      *config.Config
	log      *slog.Logger
	render   render.Node // the machine as pods see it
	level    *logLevel
	pki      *pki.Authority // nil: the kubelet's API is off
	show     func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	instance *reconcile.Instance
	client   *cri.Client
	pods     *cri.Observer
	node     *cri.NodeObserver
	devices  *device.Ledger
	router   *reconcile.Router
	sources  []source.Source
	cluster  *cluster.Cluster // nil: there is none
	written  *written.Dir     // nil: the API writes nothing
	view     *viewer
	events   *events.Log
	metrics  *metrics.Metrics
	meter    *meter        // nil before there are faces
	pulled   chan struct{} // has an element when an image came that keepNode has not seen
	logs     *logs.Notifier
	trimmer  trimmer
	classes  *classKeeper
	leave    *leaver
	pulse    pulse
	told     string             // the status line systemd heard last
	problems []manifest.Problem // of the manifests, as logged
	advice   []manifest.Problem // what had an event and is no problem
}

// newPodd takes the root directory over and connects nothing yet. Close
// gives the directory up.
func newPodd(cfg *config.Config, log *slog.Logger, level *logLevel) (*podd, error) {
	instance, err := reconcile.Own(cfg.RootDir)
	if err != nil {
		return nil, err
	}
	d := &podd{
		cfg: cfg, log: log, level: level, instance: instance, trimmer: newTrimmer(),
		logs: &logs.Notifier{Log: log}, pulled: make(chan struct{}, 1),
	}
	d.pulse.began = time.Now()
	if err := d.wire(); err != nil {
		instance.Close()
		return nil, err
	}
	return d, nil
}

// Close gives up the root directory and the connection to the runtime.
func (d *podd) Close() error {
	if d.meter != nil {
		d.meter.sampler.Close() // it reads the one and asks the other
	}
	d.client.Close()
	return d.instance.Close()
}

func (d *podd) wire() error {
	cfg := d.cfg
	node, err := renderNode(cfg, d.instance.ID)
	if err != nil {
		return err
	}
	d.render = node
	d.metrics = d.newMetrics(node)
	if d.client, err = dial(cfg, d.log, d.metrics.Call); err != nil {
		return err
	}
	if cfg.API.Listen != "" {
		if d.pki, err = pki.Open(cfg.RootDir); err != nil {
			d.log.Error("the kubelet's API is not served", "err", err) // pods run without it
		}
	}
	if cfg.APIManifestDir != "" {
		if err := readOnce(cfg); err != nil {
			return err
		}
		vanished := writtenSource(cfg, source.Options{Cache: cacheDir(cfg)}).Keeps()
		if d.written, err = written.Open(cfg.APIManifestDir, vanished); err != nil {
			return err
		}
	}
	d.events = newEvents(cfg.NodeName, node.CgroupV2)
	d.cluster = d.newCluster()
	cache := cacheDir(cfg)
	if d.sources, err = sources(cfg, source.Options{Log: d.log, Cache: cache}); err != nil {
		return err
	}
	if d.cluster != nil {
		d.sources = append(d.sources, d.cluster.Source())
	}
	if err := source.Prune(cache, d.sources...); err != nil {
		d.log.Warn("content of sources that are no longer configured stays", "err", err)
	}
	d.view = newViewer(server.View{
		Node: cfg.NodeName, Version: thisVersion().Version, Root: cfg.RootDir,
		Endpoint: cfg.RuntimeEndpoint, RestartRules: cfg.RestartRules, Sources: sourceNames(d.sources), Written: writtenName(cfg),
	})
	d.view.objects.written = writtenName(cfg)
	d.view.changed, d.view.gone = d.metrics.Pod, d.metrics.Gone
	d.view.advisor = &advisor{node, cfg.ResolvConf, func() (render.DNS, error) { return readDNS(cfg.ResolvConf) }}
	d.tellReboot()
	d.view.machine = newNodeView(cfg, node, d.instance.ID)
	d.classes = newClassKeeper(node, cgroup.Make, d.log)
	if cfg.EnforceReserved {
		d.classes.told = d.tellEnforced
	}
	d.pods = d.client.NewObserver(cri.ObserverOptions{Instance: d.instance.ID, Slow: cfg.SyncFrequency, Looked: d.metrics.Relisted, Logger: d.log})
	d.node = d.client.NewNodeObserver(cri.NodeObserverOptions{Logger: d.log})
	d.devices = openDevices(cfg.RootDir, d.log)
	effects := newEffects(cfg, cfg.RootDir, d.client, node)
	effects.Devices, effects.Done = d.devices, d.done(counted(d.metrics))
	left := leftovers(cfg)
	left.CgroupRemoved = d.cgroupRemoved
	effects.MakeCgroup, effects.Leftovers = d.timedMake, left
	d.leave = newLeaver(cfg, d.log)
	d.router = reconcile.NewRouter(reconcile.Options{
		Effects: effects, Devices: d.devices,
		Journals: journals(cfg.RootDir),
		Log:      d.log, Refresh: d.pods.Refresh, Publish: d.publish,
		SourceKinds: sourceKinds(d.sources), Limits: limitsOf(cfg, node.Allocatable),
		Kept:   volume.Claims{Root: claimsDir(cfg)}.Kept,
		Render: node, Adopt: cfg.Adopt, MaxBackoff: cfg.MaxRestartPeriod,
		Beat: d.beat, BeatEvery: beatEvery(d.log), Shutdown: d.leave.underWay(),
	})
	d.leave.router = d.router
	return nil
}

// newEffects does what plans say with the pods of one root directory.
func newEffects(cfg *config.Config, root string, client *cri.Client, node render.Node) *reconcile.Effects {
	credentials := filepath.Join(cfg.RootDir, "config.json")
	return &reconcile.Effects{
		Runtime: client,
		Images: pull.New(pull.Options{
			Runtime: client, Credentials: pull.File(credentials), CredentialsIn: credentials,
			Providers: provider.New(cfg.CredentialProviderDir, cfg.CredentialProviders).Credentials,
			Parallel:  cfg.ParallelPulls, QPS: cfg.PullQPS, Burst: cfg.PullBurst,
			UsePresent: cfg.PullOffline == config.PullUsePresent,
		}),
		Disk:      volume.Dir{Root: podsDir(root), Memory: node.Capacity.Memory, Claims: claimsDir(cfg), Attempts: &volume.Attempts{}},
		Leftovers: leftovers(cfg),
		EndShim:   shim.End, MakeCgroup: cgroup.Make,
		DNS:  func() (render.DNS, error) { return readDNS(cfg.ResolvConf) },
		Gate: reconcile.NewGate(parallelStarts(cfg)),
	}
}

// leftovers are those of pods beside their directories.
func leftovers(cfg *config.Config) collect.Leftovers {
	return collect.Leftovers{
		Logs:       collect.Logs{Dir: cfg.PodLogsDir, Links: filepath.Join(filepath.Dir(cfg.PodLogsDir), "containers")},
		CgroupRoot: cfg.CgroupRoot,
	}
}

// cacheDir keeps the last good contents of the sources.
func cacheDir(cfg *config.Config) string { return filepath.Join(cfg.RootDir, "sources") }

// claimsDir has what outlives pods, those of a run to completion too.
func claimsDir(cfg *config.Config) string { return filepath.Join(cfg.RootDir, "claims") }

func podsDir(root string) string { return filepath.Join(root, "pods") }

func journals(root string) reconcile.Journals { return reconcile.Journals{Root: podsDir(root)} }

// defaultEndpoint is waited for where no runtime is found.
const defaultEndpoint = "/run/containerd/containerd.sock"

// dial tells called, which may be nil, of every call.
func dial(cfg *config.Config, log *slog.Logger, called func(method string, took time.Duration, err error)) (*cri.Client, error) {
	endpoint := cfg.RuntimeEndpoint
	if endpoint == "" {
		found, err := cri.Discover()
		if err != nil {
			log.Warn("no runtime yet", "err", err, "waiting", defaultEndpoint)
			found = defaultEndpoint
		}
		endpoint = found
	}
	return cri.Dial(cri.Options{Endpoint: endpoint, ImageEndpoint: cfg.ImageEndpoint, Timeout: cfg.RuntimeRequestTimeout, Called: called})
}

// mostStarts is where more at once only wait for the kernel's own locks.
const mostStarts = 64

// parallelStarts: a start is in part waiting, for the runtime's programs and
// the disk. On two cores eight at once are 8 % faster than four, and beside busy
// pods they get more of the processor.
func parallelStarts(cfg *config.Config) int {
	if cfg.ParallelStarts > 0 {
		return cfg.ParallelStarts
	}
	return min(4*goruntime.NumCPU(), mostStarts)
}

// run works until ctx is done or a part fails, and returns when every part has
// ended. Pods run on.
func (d *podd) run(ctx context.Context) error {
	faces, err := d.faces(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	snapshots := make(chan runtime.Snapshot)
	nodes := make(chan runtime.Node)
	sets := source.Watch(ctx, d.sources...)
	in := reconcile.Inputs{Sets: sets, Snapshots: snapshots, Nodes: nodes, Devices: d.devices.Changed()}
	group.Go(func() error { return d.trimmer.run(ctx) })
	group.Go(func() error { return d.sweep(ctx) })
	group.Go(func() error { return d.keepLimits(ctx) })
	group.Go(func() error { return d.keepDisk(ctx) })
	group.Go(func() error { return d.keepNode(ctx) })
	group.Go(func() error { return d.classes.run(ctx) })
	group.Go(func() error { return d.rotateLogs(ctx) })
	group.Go(func() error { return d.writeEvents(ctx) })
	group.Go(func() error { return d.joinCluster(ctx) })
	group.Go(func() error { return d.awaitShutdown(ctx) })
	group.Go(func() error { return d.router.Run(ctx, in) })
	group.Go(func() error { d.serveDevices(ctx); return nil })
	group.Go(func() error { return ended(d.pods.Run(ctx, send(ctx, snapshots))) })
	group.Go(func() error { return ended(d.node.Run(ctx, send(ctx, nodes))) })
	for _, face := range faces {
		group.Go(func() error { return face(ctx) })
	}
	group.Go(func() error {
		if d.router.Ping(ctx) == nil {
			notify(d.log, daemon.SdNotifyReady)
		}
		return nil // why there was no turn is told by the router's own end
	})
	err = group.Wait()
	for range sets { // the sources write their caches; Close gives these up
	}
	notify(d.log, daemon.SdNotifyStopping)
	return err
}

func (d *podd) publish(c reconcile.Change) {
	d.events.Add(notes(c.Events)...)
	if c.Quiet {
		return
	}
	d.view.publish(c)
	d.classes.take(c)
	if c.SetChanged {
		before, passed := d.problems, d.advice
		d.problems, d.advice = logNew(d.log, d.view.said, before, c.Set.Files), d.view.told
		d.events.Add(notes(advised(c.Set, slices.Concat(before, passed), slices.Concat(d.problems, d.advice), time.Now()))...)
	}
	d.trimmer.touch()
}

// ended makes nothing of the end that was asked for.
func ended(err error) error {
	if err == context.Canceled {
		return nil
	}
	return err
}

// send makes an emit of a channel; it gives up when ctx is done.
func send[T any](ctx context.Context, c chan<- T) func(T) {
	return func(v T) {
		select {
		case c <- v:
		case <-ctx.Done():
		}
	}
}
