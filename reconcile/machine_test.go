package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile"
	"podd/reconcile/device/allocation"
	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/journal"
	"podd/reconcile/node"
	"podd/reconcile/plan"
	"podd/reconcile/pull"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest"
)

// machine is a node inside a synctest bubble: a runtime in memory, a real root directory,
// and a podd on both that can be started and killed.
type machine struct {
	*runtimetest.Runtime
	t    *testing.T
	root string
	// disk and leftovers are used by effects. Tests may change them while no podd runs.
	disk      effect.Disk
	leftovers *leftovers
	options   func(*reconcile.Options) // called before each start of podd; may be nil
	log       slog.Handler
	devices   <-chan struct{} // as in reconcile.Inputs, for the next start
	drivers   <-chan struct{} // likewise
	boot      string          // ID of the current boot
	booted    time.Time
	addresses chan node.Addresses // as in reconcile.Inputs, for the next start

	shared map[*manifest.Pod]*v1.Pod // a copy of each pod that was passed to setPods, to detect changes to the pod

	mu               sync.Mutex // guards all following fields
	set              *manifest.Set
	objects          map[string]manifest.Objects          // used for the next set
	node             render.Resources                     // as last published
	devicesPublished map[v1.ResourceName]allocation.Count // likewise
	podd             *podd                                // nil before the first start
	reports          map[types.NamespacedName]*state.Report
	removed          []types.NamespacedName
	events           []event.Event
	// problems are the problems of the node as a whole, as last published.
	problems      []manifest.Problem
	firstPods     []string           // pods in the first Change of this podd after its start
	snapshots     []runtime.Snapshot // all snapshots of the observer, if keepSnapshots is set
	keepSnapshots bool
	adopt         bool // as with --adopt
	// instance is the instance ID of the next podd. adopted contains the instances that the
	// next podd has adopted.
	instance string
	adopted  []string
}

// A podd is one run of podd, from its start until it is killed.
type podd struct {
	ctx       context.Context
	cancel    context.CancelFunc
	router    *reconcile.Router
	snapshots chan runtime.Snapshot // tests may send their own values
	sets      chan *manifest.Set
	nodes     chan runtime.Node
	parts     sync.WaitGroup
}

const listTime = time.Millisecond

func newMachine(t *testing.T) *machine { return newMachineOn(t, runtimetest.Options{}) }

func newMachineOn(t *testing.T, o runtimetest.Options) *machine {
	m := newMachineWithRuntime(t, runtimetest.New(t, o))
	// Each call takes time, so that an observation begins after the change that it shows.
	m.Inject(runtimetest.Fault{Method: "ListContainers", Delay: listTime})
	m.AddImages("web:1", "web:2", "job:1", "init:1", "side:1")
	return m
}

// newMachineWithRuntime returns a machine with a runtime that other machines may also use.
func newMachineWithRuntime(t *testing.T, on *runtimetest.Runtime) *machine {
	root := t.TempDir()
	return &machine{
		Runtime: on, t: t, root: root, instance: instance,
		disk:      volume.Dir{Root: filepath.Join(root, "pods")},
		leftovers: newLeftovers(filepath.Join(root, "logs")),
		log:       slog.DiscardHandler,
		set:       &manifest.Set{},
		shared:    map[*manifest.Pod]*v1.Pod{},
		boot:      "boot 1", booted: time.Now().Add(-time.Hour),
	}
}

// start starts podd. The sources report the same pods as to the previous podd.
func (m *machine) start() {
	d := &podd{snapshots: make(chan runtime.Snapshot), sets: make(chan *manifest.Set), nodes: make(chan runtime.Node)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	took, err := journal.Store{Root: filepath.Join(m.root, "pods")}.HasTakenOverPod()
	if err != nil {
		m.t.Error(err)
	}
	observer := m.NewObserver(cri.ObserverOptions{Instance: m.instance, AdoptedInstances: m.adopted, IncludeUnlabelled: m.adopt || took, Logger: slog.New(m.log)})
	node := m.NewNodeObserver(cri.NodeObserverOptions{Logger: slog.New(m.log)})
	d.router = m.newRouter(observer.Refresh)
	d.parts.Go(func() {
		if err := d.router.Run(d.ctx, reconcile.Inputs{Sets: d.sets, Snapshots: d.snapshots, Nodes: d.nodes, Devices: m.devices, Drivers: m.drivers, Addresses: m.addresses}); err != nil {
			m.t.Errorf("Router.Run: got error %v, want none", err)
		}
	})
	d.parts.Go(func() {
		observer.Run(d.ctx, func(s runtime.Snapshot) { m.recordSnapshot(s); send(d.ctx, d.snapshots, s) })
	})
	d.parts.Go(func() { node.Run(d.ctx, func(n runtime.Node) { send(d.ctx, d.nodes, n) }) })
	m.mu.Lock()
	m.podd, m.reports, m.firstPods = d, map[types.NamespacedName]*state.Report{}, nil
	set := m.set
	m.mu.Unlock()
	if set.CompleteSources != nil {
		send(d.ctx, d.sets, set)
	}
}

func (m *machine) newRouter(refresh func(types.NamespacedName, bool)) *reconcile.Router {
	o := reconcile.Options{
		Effects: &effect.Runner{
			Runtime: m.Client, Images: pull.New(pull.Options{Runtime: m.Client}),
			Disk: m.disk, LogsAndCgroups: m.leftovers, Gate: effect.NewGate(4),
		},
		Journals: journal.Store{Root: filepath.Join(m.root, "pods"), Clock: m.clock, HasData: volume.Dir{Root: filepath.Join(m.root, "pods")}.HasData},
		Log:      slog.New(m.log), RequestObservation: refresh, Publish: m.publish,
		SourceKinds: map[string]string{source: manifest.KindFile},
		RenderNode:  render.Node{Name: "node", InstanceID: m.instance, AdoptedInstanceIDs: m.adopted, HostIPs: []string{"192.0.2.1"}, LogsDir: filepath.Join(m.root, "logs")},
	}
	if m.options != nil {
		m.options(&o)
	}
	return reconcile.NewRouter(o)
}

// clock reads the host's clocks.
func (m *machine) clock() state.ClockReading {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	return state.ClockReading{Now: now, BootID: m.boot, SinceBoot: now.Sub(m.booted)}
}

// current returns the running podd or, if none runs, the last podd that ran; nil before the first
// start.
func (m *machine) current() *podd {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.podd
}

// kill stops podd if it runs.
func (m *machine) kill() {
	if d := m.current(); d != nil {
		d.cancel()
		d.parts.Wait()
	}
}

const (
	instance = "0123456789abcdef"
	source   = "/manifests"
)

func send[T any](ctx context.Context, c chan<- T, v T) {
	select {
	case c <- v:
	case <-ctx.Done():
	}
}

func (m *machine) recordSnapshot(s runtime.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keepSnapshots {
		m.snapshots = append(m.snapshots, s)
	}
}

// A statusLog records the published phases and reasons of a pod in the format "Failed NodeAffinity",
// without consecutive duplicates.
type statusLog struct {
	pod string     // name of the pod
	mu  sync.Mutex // guards all
	all []string
}

// watch makes o.Publish record the statuses.
func (l *statusLog) watch(o *reconcile.Options) {
	publish := o.Publish
	o.Publish = func(c reconcile.Change) {
		for _, r := range slices.Concat(c.Reports, c.Removed) {
			if r.Key == key(l.pod) && r.Pod != nil {
				l.add(strings.TrimSpace(string(r.Pod.Status.Phase) + " " + r.Pod.Status.Reason))
			}
		}
		publish(c)
	}
}

func (l *statusLog) add(status string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 || l.all[len(l.all)-1] != status {
		l.all = append(l.all, status)
	}
}

// hasEnded reports whether a phase was terminal.
func (l *statusLog) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(status string) bool {
		phase, _, _ := strings.Cut(status, " ")
		return manifest.IsTerminal(v1.PodPhase(phase))
	})
}

func (m *machine) publish(c reconcile.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, c.Events...)
	m.node, m.problems = c.Capacity, c.Problems
	if c.Devices != nil {
		m.devicesPublished = c.Devices
	}
	for _, r := range c.Reports {
		m.reports[r.Key] = r
	}
	for _, r := range c.Removed {
		delete(m.reports, r.Key)
		m.removed = append(m.removed, r.Key)
	}
	if m.firstPods == nil && !c.Starting {
		m.firstPods = []string{}
		for key := range m.reports {
			m.firstPods = append(m.firstPods, key.Name)
		}
	}
}

// podsAfterStart returns the pods in the first Change that podd published after its start.
func (m *machine) podsAfterStart() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.firstPods
}

// report returns the published report of a pod; nil if there is none.
func (m *machine) report(name string) *state.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reports[key(name)]
}

// rule returns the rule of a pod's last decision; "" if there is none.
func (m *machine) rule(name string) plan.RuleID {
	if r := m.report(name); r != nil {
		return r.Decision.Rule
	}
	return ""
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// setPods sets the desired pods.
func (m *machine) setPods(pods ...*manifest.Pod) {
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}, CompleteSources: map[string]bool{source: true}}
	set = m.withObjects(set)
	for _, p := range pods {
		set.Pods[p.Key] = p
		if m.shared[p] == nil {
			m.shared[p] = p.Object.DeepCopy()
		}
	}
	m.mu.Lock()
	m.set = set
	d := m.podd
	m.mu.Unlock()
	if d != nil {
		send(d.ctx, d.sets, set)
	}
}

// advance advances the time by d, and waits until all goroutines are idle.
func (m *machine) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// settle advances the time far enough for all waits that are shorter than minutes.
func (m *machine) settle() { m.advance(20 * time.Second) }

// wantState fails the test unless the sandboxes and containers equal the arguments, in the format
// of Runtime.Sandboxes and Runtime.Containers without the namespace.
func (m *machine) wantState(want ...string) {
	m.t.Helper()
	var got []string
	for _, line := range slices.Concat(m.Sandboxes(), m.Containers()) {
		got = append(got, strings.TrimPrefix(line, "default/"))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		m.t.Fatalf("sandboxes and containers: got\n  %s\nwant\n  %s\n%s", strings.Join(got, "\n  "), strings.Join(want, "\n  "), m.state())
	}
}

// wantCalls fails the test unless exactly these calls changed something since ForgetCalls.
func (m *machine) wantCalls(want ...string) {
	m.t.Helper()
	m.wantCallsWith("", want...)
}

// wantCallsWith works like wantCalls, but also requires the call in aside. That call may be at any
// position, because it is concurrent with the other calls. If aside is "", it requires no other call.
func (m *machine) wantCallsWith(aside string, want ...string) {
	m.t.Helper()
	var got []string
	for _, e := range m.Effects() {
		got = append(got, strings.ReplaceAll(e, "default/", ""))
	}
	if at := slices.Index(got, aside); at >= 0 {
		got = slices.Delete(got, at, at+1)
	} else if aside != "" {
		m.t.Fatalf("calls of podd: got none that is %q, want one at any position", aside)
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("calls of podd: got\n  %s\nwant\n  %s\n%s", strings.Join(got, "\n  "), strings.Join(want, "\n  "), m.state())
	}
}

// state returns the state of every pod, for failures.
func (m *machine) state() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(m.reports), func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(&b, "%s\n%s", key, m.reports[key].Decision)
	}
	return b.String()
}

// dirs returns the pod directories.
func (m *machine) dirs() []string {
	entries, err := os.ReadDir(filepath.Join(m.root, "pods"))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// pod decodes one pod named name from the fields of its spec.
func pod(t *testing.T, name, spec string) *manifest.Pod {
	t.Helper()
	return podOf(t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  %s\n", name, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")))
}

func podOf(t *testing.T, text string) *manifest.Pod {
	t.Helper()
	file := decode.File([]byte(text), decode.Options{Source: source, Path: source + "/a.yaml"})
	if len(file.Pods) != 1 {
		t.Fatalf("decoded pods: got %d, want one: %v", len(file.Pods), file.Problems)
	}
	return file.Pods[0]
}

// run runs a test on a machine, which is stopped afterwards.
func run(t *testing.T, test func(t *testing.T, m *machine)) {
	t.Helper()
	runOn(t, runtimetest.Options{}, test)
}

// runOn works like run, with a runtime that has the options o. run uses containerd 2.x.
func runOn(t *testing.T, o runtimetest.Options, test func(t *testing.T, m *machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMachineOn(t, o)
		defer m.finish()
		test(t, m)
	})
}

// finish kills podd if it runs, and checks that no shared pod was modified.
func (m *machine) finish() {
	m.kill()
	for p, copy := range m.shared {
		if diff := cmp.Diff(copy, p.Object); diff != "" {
			m.t.Errorf("the shared pod %s was modified (-before +after)\n%s", p.Key, diff)
		}
	}
}

// restart kills podd and starts another one on the same machine.
func (m *machine) restart() {
	m.kill()
	m.start()
	m.settle()
}
