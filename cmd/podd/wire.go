package main

import (
	"crypto/tls"
	"log/slog"
	"time"

	"podd/cmd/podd/internal/cluster"
	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
	"podd/manifest/written"
	"podd/reconcile"
	"podd/reconcile/cgroup"
	"podd/reconcile/device"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/csi"
	"podd/runtime/cri"
	"podd/runtime/logs"
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
	csi      *csi.Drivers // nil: there are none
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

// wire makes the parts, each of those before it.
//
//	sources, cluster ──▶ router ──▶ effects ──▶ runtime
//	observers ───────────▶ │
//	                       └──────▶ view ──▶ faces, events, metrics, cluster
func (d *podd) wire() (err error) {
	if d.render, err = renderNode(d.cfg, d.instance.ID); err != nil {
		return err
	}
	d.metrics, d.events = d.newMetrics(d.render), newEvents(d.cfg.NodeName, d.render.CgroupV2)
	if d.client, err = dial(d.cfg, d.log, d.metrics.Call); err != nil {
		return err
	}
	d.pki = openPKI(d.cfg, d.log)
	if d.written, err = openWritten(d.cfg); err != nil {
		return err
	}
	if d.csi, err = d.openDrivers(); err != nil {
		return err
	}
	d.cluster = d.newCluster()
	if d.sources, err = d.openSources(); err != nil {
		return err
	}
	d.view = d.newView()
	d.tellReboot()
	d.classes = d.newClasses()
	if d.pods, d.node, err = d.newObservers(); err != nil {
		return err
	}
	d.devices = openDevices(d.cfg.RootDir, d.log)
	d.leave = newLeaver(d.cfg, d.log)
	d.router = d.newRouter()
	d.leave.router = d.router
	return nil
}

// newView shows what the router publishes, and tells the metrics.
func (d *podd) newView() *viewer {
	cfg := d.cfg
	v := newViewer(server.View{
		Node: cfg.NodeName, Version: thisVersion().Version, Root: cfg.RootDir,
		Endpoint: cfg.RuntimeEndpoint, RestartRules: cfg.RestartRules, Sources: sourceNames(d.sources), Written: writtenName(cfg),
	})
	v.objects.written = writtenName(cfg)
	v.changed, v.gone = d.metrics.Pod, d.metrics.Gone
	v.advisor = &advisor{d.render, cfg.ResolvConf, func() (render.DNS, error) { return readDNS(cfg.ResolvConf) }}
	v.machine = newNodeView(cfg, d.render, d.instance.ID)
	return v
}

func (d *podd) newClasses() *classKeeper {
	k := newClassKeeper(d.render, cgroup.Make, d.log)
	if d.cfg.EnforceReserved {
		k.told = d.tellEnforced
	}
	return k
}

// newObservers see what runs, and what the runtime says of itself.
func (d *podd) newObservers() (*cri.Observer, *cri.NodeObserver, error) {
	nobodys, err := looksIntoNobodys(d.cfg)
	if err != nil {
		return nil, nil, err
	}
	pods := d.client.NewObserver(cri.ObserverOptions{
		Instance: d.instance.ID, Nobodys: nobodys, Slow: d.cfg.SyncFrequency, Looked: d.metrics.Relisted, Logger: d.log,
	})
	return pods, d.client.NewNodeObserver(cri.NodeObserverOptions{Logger: d.log}), nil
}

// looksIntoNobodys says whether what has no podd's label may be podd's.
func looksIntoNobodys(cfg *config.Config) (bool, error) {
	if cfg.Adopt {
		return true, nil
	}
	return journals(cfg.RootDir).TookOver()
}

// newRouter brings what is seen to what is wanted.
func (d *podd) newRouter() *reconcile.Router {
	return reconcile.NewRouter(reconcile.Options{
		Effects: d.newEffects(), Devices: d.devices,
		Journals: journals(d.cfg.RootDir),
		Log:      d.log, Refresh: d.pods.Refresh, Publish: d.publish,
		SourceKinds: sourceKinds(d.sources), Limits: limitsOf(d.cfg, d.render.Allocatable),
		Kept:   volume.Claims{Root: claimsDir(d.cfg)}.Kept,
		Render: d.render, Adopt: d.cfg.Adopt, MaxBackoff: d.cfg.MaxRestartPeriod,
		Beat: d.beat, BeatEvery: beatEvery(d.log), Shutdown: d.leave.underWay(),
	})
}

// newEffects are counted, and have the devices of plugins.
func (d *podd) newEffects() *reconcile.Effects {
	e := newEffects(d.cfg, d.cfg.RootDir, d.client, d.render, d.csi)
	e.Devices, e.Done, e.MakeCgroup = d.devices, d.done(counted(d.metrics)), d.timedMake
	left := leftovers(d.cfg)
	left.CgroupRemoved = d.cgroupRemoved
	e.Leftovers = left
	return e
}
