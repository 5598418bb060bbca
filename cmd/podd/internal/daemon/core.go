package daemon

import (
	"fmt"
	"slices"
	"time"

	"podd/cmd/podd/internal/daemon/nodestatus"
	"podd/cmd/podd/internal/daemon/shutdown"
	"podd/cmd/podd/internal/daemon/view"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/sources"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/cgroup"
	"podd/reconcile/device"
	"podd/reconcile/effect"
	"podd/reconcile/eviction"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/csi"
	"podd/runtime/cri"
	"podd/server"
	"podd/server/events"
)

// A core contains the parts that reconcile the observed pods with the desired ones.
type core struct {
	pods         *cri.Observer
	nodeObserver *cri.NodeObserver
	devices      *device.Ledger
	view         *view.Publisher
	qos          *qosSyncer
	reports      *eviction.ReportCache
	router       *reconcile.Router
	shutdown     *shutdown.Manager
	pulled       chan struct{} // capacity 1; receives a value after an image was pulled
}

// newCore returns the core for the sources in in.
func newCore(b base, t telemetry, in inputs, client *cri.Client, on render.Node) (core, error) {
	cfg := b.cfg
	unlabelled, err := wiring.IncludesUnlabelled(cfg)
	if err != nil {
		return core{}, err
	}
	pods := client.NewObserver(cri.ObserverOptions{
		Instance: b.instance.ID, Adopted: b.instance.Adopted, Nobodys: unlabelled, Slow: cfg.SyncFrequency, Looked: t.metrics.RecordRelist, Logger: b.log,
	})
	devices, unreadable := openDeviceLedger(cfg.RootDir, b.log)
	c := core{
		pods: pods, nodeObserver: client.NewNodeObserver(cri.NodeObserverOptions{Logger: b.log}), devices: devices,
		view:    newView(b, t, in, on, slices.Concat(contestedProblems(b.instance), unreadable)),
		reports: eviction.NewReportCache(), pulled: make(chan struct{}, 1),
	}
	c.qos = newQOSSyncer(qosOptions{Node: on, Limit: cgroup.Make, OnResult: enforcementRecorder(cfg.EnforceReserved, t.events), Log: b.log})
	stored := shutdown.Load(cfg.RunDir, host.FirstLine("/proc/sys/kernel/random/boot_id"), b.log)
	p := &publisher{events: t.events, view: c.view, reports: c.reports, qos: c.qos, touch: t.trimmer.Touch, log: b.log}
	status := &statusNotifier{state: c.view.Latest, beats: t.beats, log: b.log}
	c.router = reconcile.NewRouter(reconcile.Options{
		Effects: newEffects(b, t, client, on, in.csi, devices, c.pulled), Devices: devices,
		Journals: rootdir.Journals(cfg.RootDir),
		Log:      b.log, Refresh: pods.Refresh, Publish: p.publish,
		SourceKinds: sources.Kinds(in.sources), Limits: host.Limits(cfg, on.Allocatable),
		Kept:   volume.Claims{Root: rootdir.Claims(cfg.RootDir)}.Kept,
		Render: on, Adopt: cfg.Adopt, MaxBackoff: cfg.MaxRestartPeriod,
		EarlierNodes: b.name.record.Earlier,
		InstanceRuns: reconcile.InstanceRuns,
		Beat:         status.beat, BeatEvery: beatInterval(b.log), Shutdown: stored.Groups(),
	})
	c.shutdown = shutdown.New(stored, shutdown.Options{Router: c.router, Groups: cfg.Shutdown, Log: b.log})
	return c, nil
}

// newView returns the view of the router's changes, which passes them to the metrics.
// initial are the problems that podd found when it started.
func newView(b base, t telemetry, in inputs, on render.Node, initial []manifest.Problem) *view.Publisher {
	cfg := b.cfg
	object := nodestatus.NewObject(nodestatus.ObjectOptions{
		Node: on, Limits: host.Limits(cfg, on.Allocatable), Info: host.SystemInfo(cfg.AsKubelet),
		Instance: b.instance.ID, RootDir: cfg.RootDir, Listen: cfg.API.Listen,
	})
	return view.New(view.Options{
		Self: server.View{
			Node: cfg.NodeName, Version: b.version, Root: cfg.RootDir,
			Endpoint: cfg.RuntimeEndpoint, RestartRules: cfg.RestartRules, Sources: sources.Names(in.sources), WritableSource: sources.APIName(cfg),
		},
		Node: view.NewNode(object, on.HostIPs), State: t.state, Initial: initial,
		APISource: sources.APIName(cfg), Changed: t.metrics.UpdatePod, Removed: t.metrics.DeletePod,
		Advisor: view.NewAdvisor(on, cfg.ResolvConf, func() (render.DNS, error) { return host.ReadDNS(cfg.ResolvConf) }),
	})
}

// contestedProblems returns a problem for each adopted instance that another podd runs.
func contestedProblems(i *reconcile.Instance) (all []manifest.Problem) {
	for _, id := range i.Contested {
		all = append(all, manifest.Problem{Severity: manifest.Warning, Message: fmt.Sprintf(
			"another running podd uses the adopted instance %s and keeps its pods; to run them here, stop the other podd and restart this one", id)})
	}
	return all
}

// newEffects returns the effects with metrics and devices.
func newEffects(b base, t telemetry, client *cri.Client, on render.Node, drivers *csi.Drivers, devices *device.Ledger, pulled chan<- struct{}) *effect.Runner {
	e := wiring.NewEffects(b.cfg, b.cfg.RootDir, client, on, drivers)
	e.Devices, e.Done, e.MakeCgroup = devices, pullNotifier(pulled, outcomeCounter(t.metrics)), cgroupMaker(t.metrics)
	leftovers := wiring.Leftovers(b.cfg)
	leftovers.CgroupRemoved = func(took time.Duration) { t.metrics.RecordCgroup("destroy", took) }
	e.Leftovers = leftovers
	return e
}

// enforcementRecorder returns a function that records whether the limit of all pods
// together could be set, or nil if it is not enforced.
func enforcementRecorder(isEnforced bool, log *events.Log) func(error) {
	if !isEnforced {
		return nil
	}
	return func(err error) { log.Add(events.Note(enforcementEvent(err, time.Now()))) }
}
