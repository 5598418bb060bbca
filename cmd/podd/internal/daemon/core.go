package daemon

import (
	"fmt"
	"path/filepath"
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
	"podd/reconcile/event"
	"podd/reconcile/eviction"
	"podd/reconcile/gc/containers"
	"podd/reconcile/gc/images"
	"podd/reconcile/node"
	"podd/reconcile/pull"
	"podd/reconcile/pull/provider"
	"podd/reconcile/pull/record"
	"podd/reconcile/pull/verify"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/claim"
	"podd/runtime/bootid"
	"podd/runtime/cri"
	"podd/server"
	"podd/server/events"
)

// A core contains the parts that reconcile the observed pods with the desired pods.
type core struct {
	podObserver  *cri.Observer
	nodeObserver *cri.NodeObserver
	devices      *device.Manager
	view         *view.Publisher
	qos          *qosSyncer
	reserved     *reservedEnforcer
	reportCache  *eviction.ReportCache
	images       *images.Manager
	containers   *containers.Collector
	router       *reconcile.Router
	shutdown     *shutdown.Manager
	pulled       chan struct{} // capacity 1; receives a value after an image was pulled
	pullRecords  *record.Store // nil if credentials for images are not verified
}

// newCore returns the core that runs the desired pods of the inputs.
func newCore(b processState, t telemetry, in inputs, client *cri.Client, on render.Node) (core, error) {
	cfg := b.cfg
	includesUnlabelled, err := wiring.IncludesUnlabelled(cfg)
	if err != nil {
		return core{}, err
	}
	limits := host.AdmissionLimits(cfg, on.Capacity, on.Allocatable)
	if limits.HostIDs, err = host.ReadHostIDs(cfg); err != nil {
		return core{}, err
	}
	pods := client.NewObserver(cri.ObserverOptions{
		Instance: b.instance.ID, AdoptedInstances: b.instance.AdoptedIDs, IncludeUnlabelled: includesUnlabelled, MaxRelistInterval: cfg.SyncFrequency, Logger: b.log,
		OnRelist: t.metrics.RecordRelist, OnPodRelist: t.metrics.RecordPodRelist,
	})
	devices, deviceProblems := openDeviceManager(cfg.RootDir, b.log)
	viewPublisher := newView(b, t, in, on, slices.Concat(contestedProblems(b.instance), deviceProblems))
	imagePods := images.NewPods(sources.Names(in.sources))
	reports, pulled := eviction.NewReportCache(), make(chan struct{}, 1)
	enforcer := newReservedEnforcer(reservedOptions{Cgroups: host.ReservedCgroups(&cfg.Resources), Node: on, SetLimits: cgroup.SetLimits, Record: t.record})
	qos := newQOSSyncer(qosOptions{
		Node: on, SetLimits: cgroup.Create, ID: cgroup.ID, OnResult: newEnforcementRecorder(!cfg.DisablePodCgroups, t.events),
		OnWritten: enforcer.begin, OnRequests: protectionRecorder(on, t.metrics), OnInterval: b.placer.place, Log: b.log,
	})
	bootID, _ := bootid.Get() // "" if unknown
	shutdownState := shutdown.Load(cfg.RunDir, bootID, b.log)
	p := &publisher{events: t.events, view: viewPublisher, reportCache: reports, qos: qos, imagePods: imagePods, onChange: t.trimmer.RecordActivity, log: b.log}
	records := wiring.OpenPullRecords(cfg)
	status := &statusNotifier{state: viewPublisher.Latest, beats: t.heartbeat, log: b.log}
	router := reconcile.NewRouter(reconcile.Options{
		Effects: wiring.NewEffects(wiring.EffectOptions{
			Config: cfg, Root: cfg.RootDir, Runtime: client, Node: on, CSI: in.csi, Devices: devices,
			LogsAndCgroups: wiring.NewLogsAndCgroups(cfg, func(took time.Duration) { t.metrics.RecordCgroup("destroy", took) }),
			CreateCgroup:   cgroupMaker(t.metrics), OnVolumeOperation: operationRecorder(t.metrics),
			OnVolumeLabel: labelRecorder(t.metrics),
			OnGroupProgress: func(g volume.GroupProgress) {
				t.record([]event.Event{event.NewSubject(g.Pod, time.Now()).NewGroupProgressEvent(g.Path, g.IsFirst, g.Visited)})
			},
			OnOutcome:     pullNotifier(pulled, outcomeCounter(t.metrics, on.RuntimeClasses)),
			OnEnsureImage: func(c pull.Check) { t.metrics.RecordEnsureImage(c.Policy, c.Present, c.PullRequired) },
			OnVerifyImage: func(r verify.Result) { t.metrics.RecordVerifyImage(string(r)) },
			OnProviderRun: func(r provider.Run) { t.metrics.RecordCredentialProvider(r.Plugin, r.Took, r.HasFailed) },
			PullRecords:   records, ServiceAccounts: serviceAccounts(in.cluster), Log: b.log,
		}),
		Devices: devices, Journals: rootdir.Journals(cfg.RootDir),
		Log: b.log, Tracer: t.tracing.Tracer(), RequestObservation: pods.Refresh, Publish: p.publish,
		SourceKinds: sources.KindsByName(in.sources), Limits: limits, AwaitPressure: true,
		StoredClaims: claim.Store{Root: rootdir.ClaimsPath(cfg.RootDir)}.ClaimsWithData,
		RenderNode:   on, AdoptKubeletPods: cfg.Adopt, MaxBackoff: cfg.MaxRestartPeriod, DeadContainers: host.DeadContainerPolicy(&cfg.Runtime),
		EarlierNodeNames: b.nodeNamer.record.EarlierNames,
		RunningInstances: reconcile.RunningInstances,
		NotifyWatchdog:   status.beat, WatchdogInterval: beatInterval(b.log), ShutdownGroups: shutdownState.Groups(),
	})
	return core{
		podObserver: pods, nodeObserver: client.NewNodeObserver(cri.NodeObserverOptions{PodCIDR: podCIDR(cfg.PodCIDR, in.cluster), CgroupDriver: cfg.ConfiguredCgroupDriver, Logger: b.log}), devices: devices,
		view: viewPublisher, qos: qos, reserved: enforcer, reportCache: reports, router: router, pulled: pulled, pullRecords: records,
		images:     newImageManager(b, t, client, imagePods),
		containers: wiring.NewContainerCollector(&cfg.Runtime, client, reports, t.record, t.tracing.Tracer(), b.log),
		shutdown:   shutdown.New(shutdownState, shutdown.Options{Router: router, Groups: cfg.Shutdown, TimesPath: filepath.Join(cfg.RootDir, shutdown.TimesFile), OnTimes: t.metrics.SetShutdownTimes, Log: b.log}),
	}, nil
}

// newView returns the Publisher of the View. The Publisher also passes changes of pods to the
// metrics. The parameter initial contains the problems that podd found when it started.
func newView(b processState, t telemetry, in inputs, on render.Node, initial []manifest.Problem) *view.Publisher {
	cfg := b.cfg
	object := nodestatus.NewNode(nodestatus.NodeOptions{
		Node: on, Limits: host.AdmissionLimits(cfg, on.Capacity, on.Allocatable), Info: host.SystemInfo(&cfg.Node),
		Instance: b.instance.ID, RootDir: cfg.RootDir, KubeletAddress: cfg.API.Address,
	})
	return view.NewPublisher(view.Options{
		Base: server.View{
			Node: cfg.NodeName, Version: b.version, RootDir: cfg.RootDir,
			Endpoint: cfg.RuntimeEndpoint, Sources: sources.Names(in.sources), WritableSource: sources.APISourceName(&cfg.Sources),
			ReadsAnyName: cfg.ActsAsKubelet,
		},
		Node: view.NewNodeBuilder(object, on.HostIPs), State: t.state, InitialProblems: initial,
		APISource: sources.APISourceName(&cfg.Sources), OnPodChanged: t.metrics.UpdatePod, OnPodRemoved: t.metrics.DeletePod,
		Advisor: view.NewAdvisor(on, cfg.ResolvConf, func() (render.DNS, error) { return node.ReadDNS(cfg.ResolvConf) }),
	})
}

// contestedProblems returns a problem for each adopted instance whose pods another running podd
// manages.
func contestedProblems(i *reconcile.Instance) (problems []manifest.Problem) {
	for _, id := range i.ContestedIDs {
		problems = append(problems, manifest.Problem{Severity: manifest.Warning, Message: fmt.Sprintf(
			"another running podd uses the adopted instance %s and manages the pods of this instance; to manage these pods here, stop the other podd and restart this podd", id)})
	}
	return problems
}

// newEnforcementRecorder returns a function that records an event. The argument of the function is
// the result of setting the limit of all pods together. newEnforcementRecorder returns nil if podd
// does not set this limit. As in the kubelet, the event does not depend on enforceNodeAllocatable.
func newEnforcementRecorder(setsLimit bool, log *events.Log) func(error) {
	if !setsLimit {
		return nil
	}
	return func(err error) { log.Add(events.Occurrence(enforcementEvent(err, time.Now()))) }
}
