package main

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/runtime"
	"podd/server"
)

// viewer turns what the router publishes into what the faces show. publish is
// called by one goroutine, the router's; latest is read by any.
type viewer struct {
	latest  *server.Latest
	reports map[types.NamespacedName]*reconcile.Report // the last of each worker
	pods    map[types.NamespacedName]*server.PodView
	since   map[manifest.Problem]time.Time // when each problem came up
	node    []manifest.Problem             // what is wrong with no single pod
	said    []manifest.Problem             // what was said of the newest set
	told    []manifest.Problem             // of the newest set, to be mended by nobody: for events alone
	advisor *advisor                       // nil says nothing
	// changed is told how a pod is shown now and was before, nil for not at all;
	// gone, of one that is no longer. nil: nobody is.
	changed func(before, after *server.PodView, now time.Time)
	gone    func(last *server.PodView)
	machine *nodeView // nil shows none
	// cluster is what keeps podd from being a cluster's node, in the form for users;
	// nil or "" for nothing. Others write it, and have the state published.
	cluster atomic.Pointer[string]
	// refused is what keeps the cluster from knowing pods as they are; likewise.
	refused atomic.Pointer[[]manifest.Problem]
	objects *objectViews
}

// newViewer begins with what is known of podd itself.
func newViewer(self server.View) *viewer {
	// Later than any revision of an earlier life of podd.
	self.Revision, self.Starting = uint64(time.Now().UnixMicro()), true
	self.Unread = self.Sources
	return &viewer{
		latest:  server.NewLatest(&self),
		reports: map[types.NamespacedName]*reconcile.Report{},
		pods:    map[types.NamespacedName]*server.PodView{},
		since:   map[manifest.Problem]time.Time{},
		objects: newObjectViews(),
	}
}

func (v *viewer) publish(c reconcile.Change) {
	for _, key := range c.Gone {
		if last := v.pods[key]; last != nil && v.gone != nil {
			v.gone(last)
		}
		delete(v.pods, key)
		delete(v.reports, key)
	}
	now := time.Now()
	for _, r := range c.Reports {
		before := v.pods[r.Key]
		v.reports[r.Key] = r
		v.pods[r.Key] = podView(r, wanted(c.Set, r.Key))
		if v.changed != nil {
			v.changed(before, v.pods[r.Key], now)
		}
	}
	old := v.latest.View()
	next := *old
	next.Revision, next.Down, next.Starting = old.Revision+1, c.Down, c.Starting
	next.ShuttingDown = c.ShuttingDown
	if c.Node.Name != "" {
		next.Runtime = c.Node.Name + " " + c.Node.Version
	}
	if v.machine != nil {
		next.Machine = v.machine.with(c)
	}
	if c.SetChanged {
		v.want(c.Set, now)
		v.said, v.told = v.problemsOf(c.Set)
		next.Files, next.Claims = fileViews(c.Set.Files), claimViews(c.Set)
		next.Unread = filter(next.Sources, func(s string) bool { return !c.Set.Complete[s] })
		next.Taken = c.Set.Versions
		set := c.Set
		next.Objects = sync.OnceValue(func() *server.Objects { return v.objects.of(set) })
	}
	if trouble := slices.Concat(nodeProblems(c.Node), v.clusterProblems()); c.SetChanged || !slices.Equal(trouble, v.node) {
		v.node = trouble
		next.Problems = v.problems(slices.Concat(trouble, v.said), now)
	}
	next.Pods = v.sortedPods()
	v.latest.Publish(&next)
}

// want shows a new set together with its files: a pod of which another version
// is wanted now is no longer current, and a new one is there, though neither's
// worker has spoken yet.
func (v *viewer) want(set *manifest.Set, now time.Time) {
	for key, p := range set.Pods {
		r, known := v.reports[key]
		switch {
		case !known:
			before := v.pods[key]
			v.pods[key] = podView(&reconcile.Report{Key: key, Version: p, Pod: p.Spec}, p)
			if v.changed != nil {
				v.changed(before, v.pods[key], now)
			}
		case v.pods[key].Current != current(r, p):
			v.pods[key] = podView(r, p)
		}
	}
}

// nodeProblems is what keeps every pod from being cared for, or from starting.
func nodeProblems(n runtime.Node) []manifest.Problem {
	var all []manifest.Problem
	note := func(ready bool, message string) {
		if !ready && message != "" {
			all = append(all, manifest.Problem{Severity: manifest.Error, Message: message})
		}
	}
	note(n.Ready, n.Message)
	note(n.NetworkReady, n.NetworkMessage)
	return all
}

func (v *viewer) clusterProblems() (all []manifest.Problem) {
	if p := v.cluster.Load(); p != nil && *p != "" {
		all = append(all, manifest.Problem{Severity: manifest.Error, Message: *p})
	}
	if p := v.refused.Load(); p != nil {
		all = append(all, *p...)
	}
	return all
}

// problemsOf is what is said of the manifests, and what is told of them besides.
func (v *viewer) problemsOf(set *manifest.Set) (said, told []manifest.Problem) {
	if set == nil {
		return nil, nil
	}
	advice, told := v.advisor.of(set)
	return slices.Concat(set.Problems, advice), told
}

func wanted(set *manifest.Set, key types.NamespacedName) *manifest.Pod {
	if set == nil {
		return nil
	}
	return set.Pods[key]
}

// current says that what a worker reported on is what is wanted.
func current(r *reconcile.Report, wanted *manifest.Pod) bool {
	v := r.Version
	return v != nil && r.Successor == nil && wanted != nil && v.UID == wanted.UID && v.Hash == wanted.Hash &&
		maps.Equal(v.Containers, wanted.Containers) && !r.Unsized
}

func (v *viewer) sortedPods() []*server.PodView {
	out := make([]*server.PodView, 0, len(v.pods))
	for _, p := range v.pods {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *server.PodView) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return out
}

// problems remembers since when each of them is there.
func (v *viewer) problems(all []manifest.Problem, now time.Time) []server.ProblemView {
	since := make(map[manifest.Problem]time.Time, len(all))
	out := make([]server.ProblemView, 0, len(all))
	for _, p := range all {
		began, known := v.since[p]
		if !known {
			began = now
		}
		since[p] = began
		out = append(out, server.ProblemView{
			Path: p.Path, Line: int(p.Position.Line), Column: int(p.Position.Column),
			Severity: string(p.Severity), Field: p.Field, Message: p.Message,
			Pod: server.Key(p.Pod), Since: began,
		})
	}
	v.since = since
	slices.SortStableFunc(out, func(a, b server.ProblemView) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

func fileViews(files []manifest.FileState) []server.FileView {
	out := make([]server.FileView, 0, len(files))
	for _, f := range files {
		out = append(out, server.FileView(f))
	}
	return out
}

func podView(r *reconcile.Report, wanted *manifest.Pod) *server.PodView {
	d := r.Decision
	p := &server.PodView{
		Pod: r.Pod, Exists: r.Exists, Current: current(r, wanted),
		Phase: string(d.Phase), Rule: d.Rule, Why: d.Why, Problem: d.Problem,
		Since: r.Since, Wake: d.Wake,
	}
	if p.Pod == nil {
		p.Pod = unknownPod(r.Key, d.Phase)
	}
	switch d.Phase {
	case plan.PhaseWait:
		p.Earlier = earlier(r)
	case plan.PhaseStop:
		p.Ending = earlier(r)
	}
	p.Sandbox = sandbox(r.Observed)
	p.Ready = ready(p.Pod)
	for _, s := range d.Steps {
		p.Steps = append(p.Steps, server.StepView{
			Container: s.Container, Rule: s.Rule, Why: s.Why, Reason: s.Reason, Problem: s.Problem, Crashes: s.Crashes, Until: s.Until,
		})
	}
	for _, q := range r.Pulls {
		p.Pulls = append(p.Pulls, server.PullView(q))
	}
	for _, a := range d.Actions {
		p.Next = append(p.Next, a.String())
	}
	if r.Version != nil {
		p.Path, p.Line = r.Version.Origin.Path, r.Version.Origin.Line
		p.Last = exits(r)
	}
	return p
}

// sandbox is the one of ours that lives.
func sandbox(observed []runtime.Incarnation) string {
	for i := range observed {
		if inc := &observed[i]; inc.Ready && !inc.Foreign {
			return inc.ID
		}
	}
	return ""
}

// exits are in the manifest's order.
func exits(r *reconcile.Report) []server.ExitView {
	var out []server.ExitView
	spec := &r.Version.Spec.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if e, ok := r.Last[c.Name]; ok {
			out = append(out, server.ExitView{
				Container: c.Name, ExitCode: e.Code, Reason: e.Reason, Message: e.Said, Why: e.Why, Started: e.StartedAt, Finished: e.FinishedAt,
			})
		}
	}
	return out
}

// earlier counts the containers that run of another version than that of the report.
func earlier(r *reconcile.Report) (n int) {
	if r.Version == nil {
		return 0
	}
	for i := range r.Observed {
		inc := &r.Observed[i]
		if inc.Foreign || !inc.Ready || plan.Runs(r.Version, inc) {
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

// unknownPod stands for something of ours that no manifest speaks of any more, or
// none yet: then it runs on.
func unknownPod(key types.NamespacedName, phase plan.Phase) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if phase == plan.PhaseHold {
		p.Status.Phase = v1.PodUnknown
		return p
	}
	now := metav1.Now()
	p.DeletionTimestamp = &now
	return p
}

func ready(p *v1.Pod) bool {
	if p.Status.Phase == v1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}
