package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"podd/cmd/podd/internal/daemon/meter"
	"podd/cmd/podd/internal/daemon/view"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/reconcile/cgroup"
	"podd/reconcile/event"
	"podd/reconcile/eviction"
	"podd/reconcile/eviction/memorywatch"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/gc/containers"
	"podd/reconcile/node"
	"podd/runtime/cri"
)

// A pressureTask detects node pressure and evicts pods.
type pressureTask struct {
	nodeName string
	options  eviction.ManagerOptions // without Memory
	// memoryNotificationsDisabled is set if podd must not use the notifications of the kernel about a
	// lack of memory.
	memoryNotificationsDisabled bool
	cgroupRoot                  string        // parent of the cgroup of all pods; "" is the top of the hierarchy
	cgroupDriver                func() string // returns the cgroup driver in effect
	observer                    *node.PressureObserver
	state                       *view.NodeState
	router                      pressureSetter
	record                      func([]event.Event)
	log                         *slog.Logger

	published *pressure.Conditions // nil before the first call of publish
}

// A pressureSetter admits pods depending on the pressure conditions of the node. It is implemented by
// *reconcile.Router.
type pressureSetter interface {
	SetPressure(ctx context.Context, c pressure.Conditions, isKnown bool) error
}

// newPressureTask returns the task that detects node pressure and evicts pods.
func newPressureTask(b processState, t telemetry, client *cri.Client, c core, usage *meter.Meter) *pressureTask {
	p := &pressureTask{nodeName: b.cfg.NodeName, memoryNotificationsDisabled: b.cfg.DisableMemoryNotifications, cgroupRoot: b.cfg.CgroupRoot, cgroupDriver: c.qos.driver, state: t.state, router: c.router, record: t.record, log: b.log}
	measure := (&cgroup.AllPods{Root: b.cfg.CgroupRoot, Driver: c.qos.driver}).Measure
	if b.cfg.DisablePodCgroups {
		measure = func() (workingSet, limit int64, err error) { return 0, 0, nil }
	}
	p.observer = node.NewPressureObserver(node.ObserverOptions{
		RootDir: b.cfg.RootDir, Runtime: client, MeasureAllPods: measure, HugePagesAvailable: b.cfg.HugePagesAvailable, Record: t.record, Log: b.log,
	})
	p.options = eviction.ManagerOptions{
		Policy: b.cfg.Eviction, Observer: p.observer, Publish: p.publish, Record: t.record, Reports: c.reportCache.All, IsStarting: c.reportCache.IsStarting, Router: c.router, Usage: usage,
		Containers: &containers.Finished{Reports: c.reportCache.All, Runtime: client, Tracer: t.tracing.Tracer()},
		Images:     imageReclaimer(c.images.Reclaim), YoungImages: imageReclaimer(c.images.ReclaimAll),
		Logs: containers.FinishedLogs{Reports: c.reportCache.All, Remove: wiring.NewLogs(b.cfg).Remove}, Log: b.log,
		OnEvict: func(signal pressure.Signal, age time.Duration) { t.metrics.RecordEvictionStatsAge(string(signal), age) },
	}
	return p
}

// Run detects node pressure and evicts pods until ctx is done.
func (p *pressureTask) Run(ctx context.Context) error {
	var paths memorywatch.Paths // without paths, the watcher sends no event
	if !p.memoryNotificationsDisabled {
		paths = notificationPaths(p.cgroupRoot, p.cgroupDriver, p.log)
	}
	memory := memorywatch.Open(paths, p.log)
	defer memory.Close()
	o := p.options
	o.Memory = memory
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.observer.Run(ctx) })
	group.Go(func() error { return eviction.NewManager(o).Run(ctx) })
	return group.Wait()
}

// publish records an event for each condition that is new or has changed, publishes the conditions,
// and passes them to admission. Only the manager's goroutine calls it.
func (p *pressureTask) publish(ctx context.Context, now eviction.Published) {
	c := now.Conditions
	var events []event.Event
	for _, kind := range view.PressureKinds {
		if p.published == nil || p.published.Has(kind) != c.Has(kind) {
			events = append(events, event.ForNodeCondition(p.nodeName, view.MessageForPressure(kind, c.Has(kind)).EventReason, time.Now()))
		}
	}
	if p.published == nil || *p.published != c {
		p.logShortages(now.Met)
	}
	p.record(events)
	p.published = &c
	p.state.SetPressure(c, pressureProblem(c, now.Met))
	_ = p.router.SetPressure(ctx, c, now.IsKnown) // SetPressure fails only if podd is stopping
}

// logShortages logs the thresholds that are met.
func (p *pressureTask) logShortages(met []pressure.MetThreshold) {
	for _, m := range met {
		p.log.Warn("the node is short of a resource", "condition", m.Signal.Condition(), "signal", m.Signal, "available", m.FormatAvailable(), "threshold", m.FormatThreshold())
	}
}

// pressureProblem returns the problem of a node with the conditions c, or nil if c is empty. met
// contains the thresholds that are met. During the transition period, met is empty although c is not.
func pressureProblem(c pressure.Conditions, met []pressure.MetThreshold) *manifest.Problem {
	if c == (pressure.Conditions{}) {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the node has the condition %v", c.Types())
	for i, m := range met {
		b.WriteString([]string{"; ", ", "}[min(i, 1)] + m.String())
	}
	b.WriteString("; podd evicts pods while a threshold is met, and does not start all pods; make more of the resource available")
	return &manifest.Problem{Severity: manifest.Warning, Message: b.String()}
}

// notificationPaths returns the paths of the kernel's interfaces that notify of a lack of memory. root
// is the parent of the cgroup of all pods. driver returns the cgroup driver in effect.
func notificationPaths(root string, driver func() string, log *slog.Logger) memorywatch.Paths {
	paths := memorywatch.Paths{Pressure: "/proc/pressure/memory"}
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		log.Warn("listing the cgroup hierarchies failed; podd checks the memory periodically", "err", err)
	}
	for _, h := range hierarchies {
		switch {
		case !slices.Contains(h.Controllers, "memory"):
		case h.IsV2:
			for _, at := range cgroup.AllPodsPaths(root, driver()) { // an unused cgroup causes no events
				paths.LimitEvents = append(paths.LimitEvents, filepath.Join(h.Path, at, "memory.events.local"))
			}
		default:
			paths.MemoryCgroup = h.Path
			paths.PodsMemoryCgroups = func() (dirs []string) {
				for _, at := range cgroup.AllPodsPaths(root, driver()) {
					dirs = append(dirs, filepath.Join(h.Path, at))
				}
				return dirs
			}
		}
	}
	return paths
}
