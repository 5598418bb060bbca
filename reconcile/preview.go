package reconcile

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// PreviewInput is a machine at one moment.
type PreviewInput struct {
	Set      *manifest.Set // required
	Seen     runtime.Snapshot
	Node     runtime.Node
	Journals Journals
	Limits   plan.Limits
	Adopt    bool
	// MaxBackoff and SourceKinds are those of Options.
	MaxBackoff  time.Duration
	SourceKinds map[string]string
	// Kept is that of manifest.Bind.
	Kept map[types.NamespacedName]bool
	// Instance is the id of the podd that owns the root; "" for none.
	Instance string
}

// Planned is what would be done about one pod name.
type Planned struct {
	Key      types.NamespacedName
	Pod      *manifest.Pod // nil: nothing wants it
	Decision plan.Decision
	// Replaces says that another version runs, which is stopped for this one as
	// soon as it can start: the Decision is only the first step of that.
	Replaces bool
}

// Preview plans for every pod name without doing anything: the same decisions
// that workers would take first.
func Preview(in PreviewInput) ([]Planned, error) {
	past, lost, err := in.Journals.all()
	if err != nil {
		return nil, err
	}
	known := manifest.Recognize(in.Set, nil, func(p *manifest.Pod) types.UID {
		return knownAs(p, past[p.Key], in.Seen.Pods[p.Key], in.Adopt)
	})
	bound := manifest.Bind(known.Set, in.Instance, in.Kept, nil)
	in.Set = bound.Set
	keys := map[types.NamespacedName]bool{}
	for key := range in.Set.Pods {
		keys[key] = true
	}
	for key := range past {
		keys[key] = true
	}
	for key, p := range in.Seen.Pods {
		if p != nil && ours(p) {
			keys[key] = true
		}
	}
	for _, uid := range lost {
		if ownerOf(uid, in.Set.Pods, in.Seen.Pods) == nobody {
			key := nameOfLost(uid)
			past[key], keys[key] = []journal{{Key: key, UID: uid, Volumes: true}}, true
		}
	}
	verdicts := previewAdmission(in, past, keys)
	var out []Planned
	for key := range keys {
		w := &worker{key: key, journals: in.Journals, refresh: func(types.NamespacedName) {}, log: slog.New(slog.DiscardHandler)}
		w.recall(past[key], time.Time{})
		w.obey(order{
			desired: in.Set.Pods[key], supply: bound.Supplies[key], certain: in.certain(key), verdict: verdicts[key],
			node: planNode(in.Node, in.Adopt, in.MaxBackoff), seen: true, pod: in.Seen.Pods[key], asOf: time.Now(),
		})
		w.in.Now = time.Now()
		w.note(w.in.Now)
		p := in.Set.Pods[key]
		out = append(out, Planned{Key: key, Pod: p, Decision: plan.Next(w.in).Told(), Replaces: replaces(p, in.Seen.Pods[key])})
	}
	slices.SortFunc(out, func(a, b Planned) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out, nil
}

func replaces(p *manifest.Pod, seen *runtime.Pod) bool {
	return p != nil && seen != nil && slices.ContainsFunc(seen.Incarnations, func(inc runtime.Incarnation) bool {
		return !inc.Foreign && plan.Live(&inc) && !plan.Runs(p, &inc)
	})
}

// certain is Router.certain for a podd that has just started and wanted nothing
// yet: the absence of a pod is a fact when every source of its kind was seen
// whole, or every source when nothing tells the kind.
func (in PreviewInput) certain(key types.NamespacedName) bool {
	if in.Set.Pods[key] != nil {
		return false
	}
	kind := ""
	if p := in.Seen.Pods[key]; p != nil {
		kind = kindOf(p.Incarnations)
	}
	return complete(in.Set, in.SourceKinds, kind)
}

// complete tells whether every source of a kind was seen whole, or every source
// when the kind is "".
func complete(set *manifest.Set, kinds map[string]string, kind string) bool {
	for name, k := range kinds {
		if (kind == "" || k == kind) && !set.Complete[name] {
			return false
		}
	}
	return true
}

// kindOf is what sandboxes say of where their pod came from, "" when they do not.
func kindOf(incarnations []runtime.Incarnation) string {
	for _, inc := range incarnations {
		if kind := inc.Annotations[manifest.AnnotationConfigSource]; kind != "" {
			return kind
		}
	}
	return ""
}

func previewAdmission(in PreviewInput, past map[types.NamespacedName][]journal, keys map[types.NamespacedName]bool) map[types.NamespacedName]plan.Verdict {
	var claimants []plan.Claimant
	for key := range keys {
		e := &entry{past: past[key]}
		claimants = append(claimants, e.claimant(key, in.Set.Pods[key], in.Seen.Pods[key], in.certain(key)))
	}
	in.Limits.Machine.Runtime = in.Node
	in.Limits.Single = manifest.SingleClaims(in.Set)
	return plan.Admission(claimants, in.Limits)
}

// planNode is what decisions need to know of a runtime.
func planNode(n runtime.Node, adopt bool, maxBackoff time.Duration) plan.Node {
	return plan.Node{
		Reachable: n.Reachable, Ready: n.Ready, NetworkReady: n.NetworkReady,
		Message: n.Message, NetworkMessage: n.NetworkMessage, Adopt: adopt, MaxBackoff: maxBackoff,
	}
}
