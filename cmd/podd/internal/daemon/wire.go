package daemon

import (
	"log/slog"
	"path/filepath"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon/endpoint"
	"podd/cmd/podd/internal/daemon/meter"
	"podd/cmd/podd/internal/daemon/podlog"
	"podd/cmd/podd/internal/daemon/view"
	"podd/cmd/podd/internal/dynconfig"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/logging"
	"podd/cmd/podd/internal/memory"
	"podd/cmd/podd/internal/tracing"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest/decode"
	"podd/reconcile"
	"podd/reconcile/event"
	"podd/reconcile/node"
	"podd/reconcile/render"
	"podd/runtime/cri"
	"podd/runtime/logs"
	"podd/server/events"
	"podd/server/metrics"
)

// A processState contains the values that all parts need. It exists until podd stops or the node is
// renamed.
type processState struct {
	cfg       *config.Config // configuration with the node name in effect
	version   string         // version of podd
	startTime time.Time      // when podd started
	startup   *startup       // explains why podd fails to start
	// configLink connects podd with the manager of its configuration. It is nil without dynamic
	// configuration.
	configLink *dynconfig.Link
	instance   *reconcile.Instance
	nodeNamer  *nodeNamer
	placer     *processPlacer
	log        *slog.Logger
	level      *logging.Level
}

// telemetry contains the metrics, events, traces and problems of podd.
type telemetry struct {
	metrics   *metrics.Metrics
	events    *events.Log
	state     *view.NodeState
	heartbeat *heartbeat
	trimmer   memory.Trimmer
	tracing   *tracing.Provider // nil if tracing is disabled
}

// record adds events to the event log.
func (t *telemetry) record(events []event.Event) { t.events.Add(eventNotes(events)...) }

// parts contains the parts of podd run, which newParts creates. No part refers to this struct.
type parts struct {
	processState
	telemetry
	node    render.Node // properties of the node, with the addresses that it had when podd started
	address *node.AddressWatcher
	dns     *node.DNSWatcher
	client  *cri.Client
	inputs
	core
	meter           *meter.Meter
	pressure        *pressureTask
	endpointOptions endpoint.Options
}

// newParts creates the parts in the order of their dependencies. It connects to nothing yet.
//
//	sources, cluster ──▶ router ──▶ effects ──▶ runtime
//	observers ───────────▶ │
//	                       └──────▶ view ──▶ endpoints, events, metrics, cluster
func newParts(b processState) (_ *parts, err error) {
	cfg, log := b.cfg, b.log
	address := host.NewAddressWatcher(cfg, filepath.Join(cfg.RootDir, "node-address"), log)
	rendered, err := host.NewRenderNode(cfg, b.instance, address.Addresses(), b.log)
	if err != nil {
		return nil, err
	}
	dns := node.NewDNSWatcher(cfg.ResolvConf, log)
	t := telemetry{
		metrics: newMetrics(rendered, b.startTime, cfg.CredentialProviderHash, cfg.Cluster.Kubeconfig != ""), events: newEventLog(cfg.NodeName, rendered.UsesCgroupV2),
		state:     view.NewNodeState(view.NodeProblems{NodeName: b.nodeNamer.nameProblem(b.nodeNamer.configuredName), DNS: dns.Check()}),
		heartbeat: &heartbeat{startTime: b.startTime}, trimmer: memory.NewTrimmer(),
	}
	if b.configLink != nil { // before the first View, so that the cluster does not remove the condition of an earlier process
		status, _ := b.configLink.Status()
		setConfig(t.state, status)
	}
	if t.tracing, err = newTracing(b); err != nil {
		return nil, err
	}
	client, err := wiring.Dial(&cfg.Runtime, log, wiring.Calls{OnCall: t.metrics.RecordCall, Tracer: t.tracing.Tracer()})
	defer func() {
		if err != nil {
			closeConnections(client, t.tracing)
		}
	}()
	if err != nil {
		return nil, err
	}
	authority := openPKI(cfg, log)
	in, err := openInputs(b, t, authority != nil)
	if err != nil {
		return nil, err
	}
	t.record(node.RebootEvents(cfg.RootDir, cfg.NodeName, b.startTime, log))
	t.record(node.SwapEvents(b.startTime))
	c, err := newCore(b, t, in, client, rendered)
	if err != nil {
		return nil, err
	}
	var hugePageBytes func() int64
	if !cfg.HugePagesAvailable {
		hugePageBytes = node.ReadHugePageBytes
	}
	usage := meter.New(meter.Options{
		Node: rendered, CgroupDriver: c.qos.driver, StartTime: b.startTime, RootDir: cfg.RootDir, Runtime: client, State: c.view.Latest, CSI: in.csi,
		RuntimeCgroup: cfg.RuntimeCgroup, SystemCgroup: cfg.SystemCgroup,
		HugePageBytes: hugePageBytes, OnVolumeMeasured: t.metrics.RecordVolumeMeasurement,
		OnSample: t.trimmer.RecordActivity, // so that podd can later free the memory for the response to a scrape
	})
	o := endpoint.Options{
		Node: cfg.NodeName, RootDir: cfg.RootDir, RunDir: cfg.RunDir, StartTime: b.startTime,
		Server: cfg.Server, RedactedConfig: cfg.RedactedConfig, PKI: authority, Cluster: newEndpointCluster(cfg, in.cluster, authority != nil),
		ServingIPs: newServingIPsFunc(address), State: c.view.Latest, Router: c.router, Shutdown: c.shutdown, Images: c.images, Runtime: client,
		Logs:   podlog.NewReader(c.view.Latest, cfg.PodLogsDir, &logs.Notifier{Log: log}),
		Events: t.events, Metrics: t.metrics, Meter: usage, HealthChecks: healthChecks(t.heartbeat, c.podObserver),
		Accept: acceptor{b.nodeNamer, in.sources}.accept, SetVerbosity: b.level.SetVerbosity, OnRequest: t.trimmer.RecordActivity, Tracer: t.tracing.Tracer(), Log: log,
	}
	if c.pullRecords != nil {
		o.PullRecordCounts = c.pullRecords.Count
	}
	if in.apiDir != nil {
		o.Manifests = endpoint.NewManifestStore(in.apiDir, c.router, decode.Options{
			NodeName: cfg.NodeName, NodeLabels: host.NodeLabels(&cfg.Node), IsWrittenByAPI: true,
		})
	}
	return &parts{
		processState: b, telemetry: t, node: rendered, address: address, dns: dns, client: client,
		inputs: in, core: c, meter: usage, pressure: newPressureTask(b, t, client, c, usage), endpointOptions: o,
	}, nil
}

// close stops the measurements in progress and closes the connections.
func (p *parts) close() {
	p.meter.Close() // the meter must be closed first, because measurements use the client and the root directory
	closeConnections(p.client, p.tracing)
}

// closeConnections closes the connections to the runtime and to the collector of traces. client may
// be nil.
func closeConnections(client *cri.Client, traces *tracing.Provider) {
	if client != nil {
		client.Close()
	}
	traces.Close() // traces must be closed last, because calls to the runtime have spans
}

// newTracing returns the Provider of traces, or nil if tracing is disabled. Queries for the traces of kubelets
// must find those of podd, if it acts as a kubelet.
func newTracing(b processState) (*tracing.Provider, error) {
	t := b.cfg.Tracing
	if t == nil {
		return nil, nil
	}
	service := "podd"
	if b.cfg.ActsAsKubelet {
		service = "kubelet"
	}
	return tracing.New(tracing.Options{Endpoint: t.Endpoint, SampleRatio: t.SampleRatio, Service: service, Node: b.cfg.NodeName, Version: b.version, Log: b.log})
}
