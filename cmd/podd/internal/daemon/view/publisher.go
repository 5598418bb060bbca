// Package view computes the View that endpoints show from the changes that the router
// publishes. It also builds the Node object and the objects of the manifests.
package view

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/claims"
	"podd/manifest"
	"podd/manifest/order"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
	"podd/server"
)

// A Publisher computes the View from the changes of the router. Only the goroutine of the
// router calls Publish. Any goroutine may read Latest.
type Publisher struct {
	Latest *server.LatestView

	o            Options
	reports      map[types.NamespacedName]*state.Report // last report of each worker
	pods         map[types.NamespacedName]*server.PodView
	changedPods  map[types.NamespacedName]*server.PodView // pods that differ from Latest; nil for a removed pod
	lastView     server.View                              // the last published View, without pods
	firstSeen    map[manifest.Problem]time.Time           // when each problem first appeared
	nodeProblems []manifest.Problem                       // problems of the node that were last published
	findings     Findings                                 // findings of the newest set
	objects      *objectViews
}

// Findings are the problems of a set and its pods.
type Findings struct {
	Problems          []manifest.Problem // shown until the next set
	EventOnlyProblems []manifest.Problem // only recorded as events, and not shown in the View
}

// Options are the options of a Publisher. All but Base may be zero.
type Options struct {
	Base server.View  // the constant parts: node, version, sources
	Node *NodeBuilder // nil if no Node is shown
	// State contains problems and facts that the router does not report.
	State *NodeState
	// InitialProblems contains the problems that podd found when it started. They are shown until
	// podd stops.
	InitialProblems []manifest.Problem
	// Advisor adds warnings about settings that do not take full effect.
	Advisor *Advisor
	// APISource is the name of the source that the API writes, or "".
	APISource string
	// OnPodChanged is called with the old and the new view of a new or changed pod. The old view of
	// a new pod is nil. OnPodRemoved is called with the last view of a removed pod.
	OnPodChanged func(before, after *server.PodView, now time.Time)
	OnPodRemoved func(last *server.PodView, now time.Time)
}

// NewPublisher returns a Publisher that shows o.Base until the first Publish.
func NewPublisher(o Options) *Publisher {
	self := o.Base
	// The first revision is the current time, because revisions must be higher than those of an
	// earlier process.
	self.Revision, self.Starting = uint64(time.Now().UnixMicro()), true
	self.UnreadSources = self.Sources
	return &Publisher{
		Latest:      server.NewLatestView(&self),
		reports:     map[types.NamespacedName]*state.Report{},
		pods:        map[types.NamespacedName]*server.PodView{},
		changedPods: map[types.NamespacedName]*server.PodView{},
		lastView:    self,
		firstSeen:   map[manifest.Problem]time.Time{},
		objects:     newObjectViews(o.APISource),
		o:           o,
	}
}

// Publish publishes the View after a change, and returns the findings of the newest set.
func (v *Publisher) Publish(c reconcile.Change) Findings {
	now := time.Now()
	for _, r := range c.Removed {
		if lastView := v.pods[r.Key]; lastView != nil && v.o.OnPodRemoved != nil {
			v.o.OnPodRemoved(lastView, now)
		}
		v.setPod(r.Key, nil)
		delete(v.reports, r.Key)
	}
	for _, r := range c.Reports {
		previous := v.pods[r.Key]
		v.reports[r.Key] = r
		v.setPod(r.Key, podView(r, desiredPod(c.Set, r.Key)))
		if v.o.OnPodChanged != nil {
			v.o.OnPodChanged(previous, v.pods[r.Key], now)
		}
	}
	problems, facts := v.o.State.get()
	next := v.lastView
	next.Revision, next.IsDown, next.Starting = next.Revision+1, c.IsStoppingAll, c.Starting
	next.ShuttingDown, next.RemovedPods = c.ShuttingDown, removedPods(next.RemovedPods, c)
	if facts != nil && facts.Pressure != nil {
		next.Pressure = facts.Pressure.Types()
	}
	if c.Node.Name != "" {
		next.Runtime = c.Node.Name + " " + c.Node.Version
	}
	if v.o.Node != nil {
		next.NodeObject = v.o.Node.update(c, facts)
	}
	if c.SetChanged {
		v.showDesired(c.Set, now)
		v.findings = v.findingsIn(c.Set)
		next.Files, next.Claims = fileViews(c.Set.FileStates), claims.List(c.Set)
		next.UnreadSources = slices.DeleteFunc(slices.Clone(next.Sources), func(s string) bool { return c.Set.CompleteSources[s] })
		next.AppliedBatches = c.Set.BatchVersions
		set := c.Set
		next.Objects = sync.OnceValue(func() *server.Objects { return v.objects.build(set) })
	}
	if node := slices.Concat(runtimeProblems(c), c.Problems, problems.list(v.o.InitialProblems)); c.SetChanged || !slices.Equal(node, v.nodeProblems) {
		v.nodeProblems = node
		next.Problems = v.problemViews(slices.Concat(node, v.findings.Problems), now)
	}
	v.lastView = next
	v.Latest.Update(&next, v.changedPods)
	clear(v.changedPods)
	return v.findings
}

// showDesired adds the new pods of a set to the View before their workers have reported. It also
// updates whether the version of each reported pod is the desired version.
func (v *Publisher) showDesired(set *manifest.Set, now time.Time) {
	for key, p := range set.Pods {
		r, hasReport := v.reports[key]
		switch {
		case !hasReport:
			previous := v.pods[key]
			v.setPod(key, podView(&state.Report{Key: key, Version: p, Pod: p.Object, IsInSource: true}, p))
			if v.o.OnPodChanged != nil {
				v.o.OnPodChanged(previous, v.pods[key], now)
			}
		case v.pods[key].IsCurrent != isCurrent(r, p):
			v.setPod(key, podView(r, p))
		}
	}
}

// removedPods returns View.RemovedPods after a change, given the value before it.
func removedPods(before map[types.NamespacedName]*v1.Pod, c reconcile.Change) map[types.NamespacedName]*v1.Pod {
	if c.Set == nil || len(c.Removed) == 0 && (!c.SetChanged || len(before) == 0) {
		return before
	}
	pods := map[types.NamespacedName]*v1.Pod{}
	add := func(key types.NamespacedName, pod *v1.Pod) {
		if source := c.Set.TerminatingPods[key]; source != nil && pod != nil && source.UID == pod.UID {
			pods[key] = pod
		}
	}
	for key, pod := range before {
		add(key, pod)
	}
	for _, r := range c.Removed {
		add(r.Key, r.Pod)
	}
	return pods
}

// runtimeProblems returns the problems of the runtime, the network and the addresses,
// which affect all pods.
func runtimeProblems(c reconcile.Change) []manifest.Problem {
	n := c.Node
	var problems []manifest.Problem
	add := func(ready bool, message string) {
		if !ready && message != "" {
			problems = append(problems, manifest.Problem{Severity: manifest.Error, Message: message})
		}
	}
	add(n.Ready, n.Message)
	add(n.NetworkReady, n.NetworkProblem())
	if text := c.Addresses.Problem; text != "" {
		problems = append(problems, manifest.Problem{Severity: manifest.Warning, Message: text})
	}
	return problems
}

// findingsIn returns the findings of a set, or none if set is nil.
func (v *Publisher) findingsIn(set *manifest.Set) Findings {
	if set == nil {
		return Findings{}
	}
	warnings, eventOnly := v.o.Advisor.warnings(set)
	return Findings{Problems: slices.Concat(set.Problems, warnings), EventOnlyProblems: eventOnly}
}

// desiredPod returns the desired pod with a key, or nil if set is nil or does not contain it.
func desiredPod(set *manifest.Set, key types.NamespacedName) *manifest.Pod {
	if set == nil {
		return nil
	}
	return set.Pods[key]
}

// isCurrent reports whether the version in the report of a worker is the desired version and the
// worker has applied this version completely.
func isCurrent(r *state.Report, desired *manifest.Pod) bool {
	v := r.Version
	return v != nil && r.Successor == nil && desired != nil && v.UID == desired.UID && v.Hash == desired.Hash &&
		maps.Equal(v.ContainerHashes, desired.ContainerHashes) && !r.IsResizePending
}

// setPod stores the view of a pod, or removes it if p is nil.
func (v *Publisher) setPod(key types.NamespacedName, p *server.PodView) {
	v.changedPods[key] = p
	if p == nil {
		delete(v.pods, key)
		return
	}
	v.pods[key] = p
}

// problemViews returns the views of problems, and records when each problem first appeared.
func (v *Publisher) problemViews(problems []manifest.Problem, now time.Time) []server.ProblemView {
	firstSeen := make(map[manifest.Problem]time.Time, len(problems))
	out := make([]server.ProblemView, 0, len(problems))
	for _, p := range problems {
		firstTime, hasAppeared := v.firstSeen[p]
		if !hasAppeared {
			firstTime = now
		}
		firstSeen[p] = firstTime
		out = append(out, server.ProblemView{
			Path: p.Path, Line: int(p.Position.Line), Column: int(p.Position.Column),
			Severity: string(p.Severity), FieldPath: p.FieldPath, Message: p.Message,
			Pod: server.Key(p.Pod), Since: firstTime,
		})
	}
	v.firstSeen = firstSeen
	order.Stable(out, func(a, b server.ProblemView) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// fileViews converts the states of files.
func fileViews(files []manifest.FileState) []server.FileView {
	out := make([]server.FileView, 0, len(files))
	for _, f := range files {
		out = append(out, server.FileView{
			Path: f.Path, Digest: f.Digest, ContentTime: f.ContentTime, OutdatedReason: f.OutdatedReason, OutdatedSince: f.OutdatedSince,
			RefusedDigest: f.RefusedDigest,
		})
	}
	return out
}

// podView returns the view of a pod. The parameter desired is the desired version of the pod, or
// nil if the pod is being deleted.
func podView(r *state.Report, desired *manifest.Pod) *server.PodView {
	d := r.Decision
	p := &server.PodView{
		Pod: r.Pod, IsInSource: r.IsInSource, Exists: r.ExistsOnNode, IsCurrent: isCurrent(r, desired),
		Phase: string(d.Phase), Rule: string(d.Rule), Why: d.Why, WhyRule: string(d.WhyRule), NeedsUser: d.NeedsUser,
		VolumePlugins: r.VolumePlugins, Since: r.DecisionSince, NextCheck: d.WakeAt,
	}
	if p.Pod == nil {
		p.Pod = newUnknownPod(r.Key, d.Phase)
	}
	switch d.Phase {
	case plan.PhaseWait:
		p.OutdatedRunningContainers = countOutdated(r)
	case plan.PhaseStop:
		p.OutdatedStoppingContainers = countOutdated(r)
	}
	p.SandboxID, p.Attempts, p.RuntimeContainers = readySandboxID(r.Observed), differingAttemptNumbers(r.Observed), countContainers(r.Observed)
	p.Ready = isReady(p.Pod)
	p.InsufficientResource = string(r.Insufficient)
	for _, s := range d.Steps {
		p.Decisions = append(p.Decisions, server.DecisionView{
			Container: s.Container, Rule: string(s.Rule), Why: s.Why, Reason: s.Reason, NeedsUser: s.NeedsUser, Crashes: s.Crashes, Until: s.Until,
		})
	}
	for _, q := range r.Pulls {
		p.Pulls = append(p.Pulls, server.PullView(q))
	}
	for _, a := range d.Actions {
		p.PlannedActions = append(p.PlannedActions, a.String())
	}
	if r.Version != nil {
		p.Path, p.Line = r.Version.Origin.Path, r.Version.Origin.Line
		p.LastExits = lastExits(r)
	}
	if r.Finished != nil {
		p.IsRejected = r.Finished.IsRejected
		p.EvictionSignal, p.PreemptionSignal = cmp.Or(r.Finished.Shortage.Signal, r.Finished.StorageLimit), string(r.Finished.Resource)
	}
	if e := r.TerminatingEviction; e != nil {
		p.EvictionSignal = cmp.Or(e.Shortage.Signal, e.StorageLimit)
	}
	return p
}

// differingAttemptNumbers returns the attempt numbers of containers by container ID. It omits containers
// whose attempt number equals their restart count.
func differingAttemptNumbers(incarnations []runtime.Incarnation) map[string]uint32 {
	var attempts map[string]uint32
	for i := range incarnations {
		for j := range incarnations[i].Containers {
			c := &incarnations[i].Containers[j]
			if c.Restarts() == c.Attempt {
				continue
			}
			if attempts == nil {
				attempts = map[string]uint32{}
			}
			attempts[c.ID] = c.Attempt
		}
	}
	return attempts
}

// readySandboxID returns the ID of the ready sandbox, or "" if there is none.
func readySandboxID(incarnations []runtime.Incarnation) string {
	for i := range incarnations {
		if inc := &incarnations[i]; inc.Ready && !inc.Foreign {
			return inc.ID
		}
	}
	return ""
}

// countContainers returns the number of containers in the runtime by state.
func countContainers(incarnations []runtime.Incarnation) (n server.ContainerCounts) {
	for i := range incarnations {
		if incarnations[i].Foreign {
			continue
		}
		for j := range incarnations[i].Containers {
			switch incarnations[i].Containers[j].State {
			case runtime.Created:
				n.Created++
			case runtime.Running:
				n.Running++
			case runtime.Exited, runtime.ExitCodeUnknown:
				n.Exited++
			default:
				n.Unknown++
			}
		}
	}
	return n
}

// lastExits returns the last exit of each container in the order of the manifest.
func lastExits(r *state.Report) []server.ExitView {
	var out []server.ExitView
	spec := &r.Version.Object.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if e, ok := r.LastExits[c.Name]; ok {
			out = append(out, server.ExitView{
				Container: c.Name, ExitCode: e.Code, Reason: e.Reason, Message: e.TerminationMessage, Why: e.Why, Started: e.StartedAt, Finished: e.FinishedAt,
			})
		}
	}
	return out
}

// countOutdated returns how many containers of earlier versions of the pod are running.
func countOutdated(r *state.Report) (n int) {
	if r.Version == nil {
		return 0
	}
	for i := range r.Observed {
		inc := &r.Observed[i]
		if inc.Foreign || !inc.Ready || plan.IsCreatedFrom(inc, r.Version) {
			continue
		}
		for _, c := range inc.Containers {
			if c.State == runtime.Running {
				n++
			}
		}
	}
	return n
}

// newUnknownPod returns a placeholder for a pod whose manifest podd does not have. Either the pod
// is being deleted, or its source has not been read yet.
func newUnknownPod(key types.NamespacedName, phase plan.Phase) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if phase == plan.PhaseHold {
		p.Status.Phase = v1.PodUnknown
		return p
	}
	now := metav1.Now()
	p.DeletionTimestamp = &now
	return p
}

// isReady reports whether the pod has the condition Ready with status True.
func isReady(p *v1.Pod) bool {
	if p.Status.Phase == v1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}
