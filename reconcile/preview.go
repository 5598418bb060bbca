package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/manifest/refs"
	"podd/reconcile/admission"
	"podd/reconcile/journal"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/reconcile/state"
	"podd/runtime"
)

// A PreviewInput contains the facts about a node at one moment that Preview needs.
type PreviewInput struct {
	Set              *manifest.Set // required
	Observed         runtime.Snapshot
	Node             runtime.Node
	Journals         journal.Store
	Limits           admission.Limits
	AdoptKubeletPods bool
	// MaxBackoff, DeadContainers and SourceKinds have the same meaning as in Options.
	MaxBackoff     time.Duration
	DeadContainers plan.DeadContainerPolicy
	SourceKinds    map[string]string
	// StoredClaims contains the PersistentVolumeClaims with data in a directory of podd.
	StoredClaims map[types.NamespacedName]bool
	// Images contains the images that are present on the node, by the names that the manifests use.
	// The value is the runtime's reference of the image.
	Images map[string]string
	// InstanceID is the ID of the instance of the root directory; "" if there is none.
	InstanceID string
}

// A PlannedPod is the first decision about one pod name.
type PlannedPod struct {
	Key      types.NamespacedName
	Pod      *manifest.Pod // nil if no pod of this name is desired
	Decision plan.Decision
	// ReplacesRunning reports whether a version other than Pod runs. That version is stopped when
	// Pod can start, and Decision is only the first step of the replacement.
	ReplacesRunning bool
}

// Preview returns the first decision that the worker of each pod name would make, sorted by name.
// It changes nothing.
func Preview(in PreviewInput) ([]PlannedPod, error) {
	pastRecords, orphans, err := in.Journals.ReadAll()
	if err != nil {
		return nil, err
	}
	recognized := manifest.Recognize(in.Set, nil, func(p *manifest.Pod) types.UID {
		return recordedUID(p, pastRecords[p.Key], in.Observed.Pods[p.Key], in.AdoptKubeletPods)
	})
	resolved := refs.ResolveSet(recognized.Set, in.InstanceID, in.StoredClaims, nil)
	in.Set = resolved.Set
	keys := map[types.NamespacedName]bool{}
	for key := range in.Set.Pods {
		keys[key] = true
	}
	for key := range pastRecords {
		keys[key] = true
	}
	for key, p := range in.Observed.Pods {
		if p != nil && hasOwnIncarnation(p) {
			keys[key] = true
		}
	}
	for _, o := range orphans {
		if classifyOwner(o.UID, in.Set.Pods, in.Observed.Pods) == ownerNone && !in.Journals.CheckData(context.Background(), o).MustKeep() {
			key := orphanKey(o.UID)
			pastRecords[key], keys[key] = []state.Record{{Key: key, UID: o.UID, HasVolumes: true}}, true
		}
	}
	names := make([]admission.NameFacts, 0, len(keys))
	for key := range keys {
		names = append(names, admission.NameFacts{Key: key, Observed: in.Observed.Pods[key], PastRecords: pastRecords[key]})
	}
	now := time.Now()
	memories, _ := admission.Decide(in.admissionInput(resolved), names, now)
	var pods []PlannedPod
	for key := range keys {
		decision := in.decide(key, pastRecords[key], describeUnreadable(in.Journals, orphans), memories[key].Order, now)
		p := in.Set.Pods[key]
		pods = append(pods, PlannedPod{Key: key, Pod: p, Decision: decision.WithoutProbes(), ReplacesRunning: replacesRunning(p, in.Observed.Pods[key])})
	}
	order.Slice(pods, func(a, b PlannedPod) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return pods, nil
}

// admissionInput returns the input of admission, as if podd had just been started and had observed
// the runtime.
func (in PreviewInput) admissionInput(resolved *refs.ResolvedSet) admission.Input {
	in.Limits.Features.Runtime = in.Node
	in.Limits.ReadWriteOncePod = refs.SinglePodClaims(in.Set)
	return admission.Input{
		Set: in.Set, Refs: resolved.Refs, InstanceID: in.InstanceID, SourceKinds: in.SourceKinds,
		Observed: in.Observed.Pods, HasSnapshot: true, AllWorkersReported: true,
		Limits: in.Limits, PlanNode: newPlanNode(in.Node, in.AdoptKubeletPods, in.MaxBackoff, in.DeadContainers), RuntimeName: in.Node.Name,
	}
}

// decide returns the first decision that the worker of the pod called key would make with order o.
func (in PreviewInput) decide(key types.NamespacedName, pastRecords []state.Record, unreadable map[types.UID]string, o state.Order, now time.Time) plan.Decision {
	requests := state.Requests{Observation: &state.Observation{Pod: in.Observed.Pods[key], AsOf: now}}
	s := state.New(state.InitialFacts{Key: key, PastRecords: pastRecords, UnreadableJournals: unreadable})
	s, _ = s.ApplyOrder(o, requests, o.Desired != nil && in.Journals.Has(o.Desired.UID), now)
	for {
		s, _ = s.PrepareDecision(nil, nil, now)
		d := plan.Next(s.Input())
		newState, isChanged := in.usePresentImages(s, d, now)
		if !isChanged {
			return d
		}
		s = newState
	}
}

// usePresentImages returns s with the results of the EnsureImage actions of d that need no pull. An
// action needs no pull if the image is present and the pull policy is not Always. isChanged is
// false if d has no such action.
func (in PreviewInput) usePresentImages(s *state.State, d plan.Decision, now time.Time) (_ *state.State, isChanged bool) {
	for _, action := range d.Actions {
		a, isImage := action.(plan.EnsureImage)
		imageRef := in.Images[a.Image]
		if !isImage || imageRef == "" || a.Policy == string(v1.PullAlways) {
			continue
		}
		version := s.PlanInput.Desired
		if a.ForSuccessor {
			version = s.PlanInput.Successor
		}
		s, _ = s.ApplyResult(result.Result{Action: a, Began: now, Ended: now, Version: version, Value: result.EnsuredImage{Image: result.Image{Ref: imageRef}}}, now)
		isChanged = true
	}
	return s, isChanged
}

// replacesRunning reports whether a version other than p runs in a sandbox of podd. p and observed
// may be nil.
func replacesRunning(p *manifest.Pod, observed *runtime.Pod) bool {
	return p != nil && observed != nil && slices.ContainsFunc(observed.Incarnations, func(inc runtime.Incarnation) bool {
		return !inc.Foreign && plan.IsLive(&inc) && !plan.IsCreatedFrom(&inc, p)
	})
}

// newPlanNode returns the facts about the node that decisions depend on.
func newPlanNode(n runtime.Node, adopt bool, maxBackoff time.Duration, deadContainers plan.DeadContainerPolicy) plan.Node {
	return plan.Node{
		RuntimeReachable: n.Reachable, RuntimeReady: n.Ready, NetworkReady: n.NetworkReady,
		RuntimeMessage: n.Message, NetworkMessage: n.NetworkProblem(), AdoptKubeletPods: adopt, MaxBackoff: maxBackoff, DeadContainers: deadContainers,
	}
}
