package reconcile

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plan"
	"podd/runtime"
)

// PreviewInput is the state of a node at one moment.
type PreviewInput struct {
	Set      *manifest.Set // required
	Observed runtime.Snapshot
	Node     runtime.Node
	Journals Journals
	Limits   plan.Limits
	Adopt    bool
	// MaxBackoff and SourceKinds are those of Options.
	MaxBackoff  time.Duration
	SourceKinds map[string]string
	// Kept is the argument of refs.ResolveSet.
	Kept map[types.NamespacedName]bool
	// Instance is the ID of the podd that uses the root directory; "" if there is none.
	Instance string
}

// Planned is the first decision about one pod name.
type Planned struct {
	Key      types.NamespacedName
	Pod      *manifest.Pod // nil if it is not desired
	Decision plan.Decision
	// Replaces reports whether another version runs, which is stopped as soon as this one
	// can start. Decision is only the first step of that.
	Replaces bool
}

// Preview plans for every pod name, and returns the decisions that workers would make
// first. It changes nothing.
func Preview(in PreviewInput) ([]Planned, error) {
	past, orphans, err := in.Journals.readAll()
	if err != nil {
		return nil, err
	}
	known := manifest.Recognize(in.Set, nil, func(p *manifest.Pod) types.UID {
		return recordedUID(p, past[p.Key], in.Observed.Pods[p.Key], in.Adopt)
	})
	bound := refs.ResolveSet(known.Set, in.Instance, in.Kept, nil)
	in.Set = bound.Set
	keys := map[types.NamespacedName]bool{}
	for key := range in.Set.Pods {
		keys[key] = true
	}
	for key := range past {
		keys[key] = true
	}
	for key, p := range in.Observed.Pods {
		if p != nil && hasOwn(p) {
			keys[key] = true
		}
	}
	for _, o := range orphans {
		if ownerOf(o.uid, in.Set.Pods, in.Observed.Pods) == noPod && !in.Journals.checkData(context.Background(), o).kept() {
			key := orphanKey(o.uid)
			past[key], keys[key] = []journal{{Key: key, UID: o.uid, Volumes: true}}, true
		}
	}
	verdicts := previewAdmission(in, past, keys)
	var out []Planned
	for key := range keys {
		w := &worker{key: key, journals: in.Journals, refresh: func(types.NamespacedName, bool) {}, log: slog.New(slog.DiscardHandler), unreadable: unreadable(orphans)}
		w.restore(past[key], time.Time{})
		w.applyOrder(order{
			desired: in.Set.Pods[key], supply: bound.Refs[key], certain: in.certain(key), verdict: verdicts[key],
			node: planNode(in.Node, in.Adopt, in.MaxBackoff), observed: true, pod: in.Observed.Pods[key], asOf: time.Now(),
		})
		w.in.Now = time.Now()
		w.recordObserved(w.in.Now)
		p := in.Set.Pods[key]
		out = append(out, Planned{Key: key, Pod: p, Decision: w.next().WithoutProbes(), Replaces: replaces(p, in.Observed.Pods[key])})
	}
	slices.SortFunc(out, func(a, b Planned) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out, nil
}

// replaces reports whether another version of p runs.
func replaces(p *manifest.Pod, seen *runtime.Pod) bool {
	return p != nil && seen != nil && slices.ContainsFunc(seen.Incarnations, func(inc runtime.Incarnation) bool {
		return !inc.Foreign && plan.Live(&inc) && !plan.Runs(p, &inc)
	})
}

// certain is Router.isAbsent for a podd that has just started: it is known that no source
// has a pod if every source of its kind was read completely, or every source if the kind is
// not known.
func (in PreviewInput) certain(key types.NamespacedName) bool {
	if in.Set.Pods[key] != nil {
		return false
	}
	kind := ""
	if p := in.Observed.Pods[key]; p != nil {
		kind = kindOf(p.Incarnations)
	}
	return isComplete(in.Set, in.SourceKinds, kind)
}

// isComplete reports whether set would contain a pod if only its sandbox is known.
// That is so if every source of the kind, or every source if kind is "", was read
// completely, and no file was rejected without a valid version to use instead. The pod may
// be in such a file: a version that could not be stored, because the disk is full, is lost
// when podd stops.
func isComplete(set *manifest.Set, kinds map[string]string, kind string) bool {
	for name, k := range kinds {
		if (kind == "" || k == kind) && !set.Complete[name] {
			return false
		}
	}
	return !slices.ContainsFunc(set.Files, func(f manifest.FileState) bool { return f.Digest == "" })
}

// kindOf returns the kind of source that sandboxes record for their pod; "" if they record
// none.
func kindOf(incarnations []runtime.Incarnation) string {
	for _, inc := range incarnations {
		if kind := inc.Annotations[manifest.AnnotationConfigSource]; kind != "" {
			return kind
		}
	}
	return ""
}

// previewAdmission returns the admission verdict of every name.
func previewAdmission(in PreviewInput, past map[types.NamespacedName][]journal, keys map[types.NamespacedName]bool) map[types.NamespacedName]plan.Verdict {
	var claimants []plan.Claimant
	for key := range keys {
		e := &entry{past: past[key]}
		claimants = append(claimants, e.claimant(key, in.Set.Pods[key], in.Observed.Pods[key], in.certain(key)))
	}
	in.Limits.Machine.Runtime = in.Node
	in.Limits.Single = refs.SingleClaims(in.Set)
	return plan.Admission(claimants, in.Limits)
}

// planNode returns the facts about a runtime that planning needs.
func planNode(n runtime.Node, adopt bool, maxBackoff time.Duration) plan.Node {
	return plan.Node{
		Reachable: n.Reachable, Ready: n.Ready, NetworkReady: n.NetworkReady,
		Message: n.Message, NetworkMessage: n.NetworkMessage, Adopt: adopt, MaxBackoff: maxBackoff,
	}
}
