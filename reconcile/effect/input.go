package effect

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// An Input contains the values of a worker that an effect reads. They are immutable.
type Input struct {
	Key        types.NamespacedName
	Desired    *manifest.Pod // see plan.Allocated
	Actual     *manifest.Pod // see plan.Actual
	Unsized    bool          // see plan.ResizePending
	Successor  *manifest.Pod
	Leaving    *manifest.Pod  // see plan.Input
	Supply     *refs.Resolved // of Desired
	NextSupply *refs.Resolved
	Observed   []runtime.Incarnation
	Node       *render.Node
	UserIDs    uint32 // for a new sandbox, see render.SandboxInput
	Permit     Permit // of plan.StartContainer
	// Pulling reports to the worker that the pull of the action's image begins.
	Pulling func(context.Context, plan.EnsureImage, event.Event)
}

// checkedVersion returns the version that the action a checks the volumes of.
func (s Input) checkedVersion(a plan.CheckVolumes) *manifest.Pod {
	if p := s.Successor; p != nil && p.UID == a.UID && p.Hash == a.Hash {
		return p
	}
	return s.Desired
}

// earlierUIDs returns the UIDs of earlier versions, which end before p starts.
func (s Input) earlierUIDs(p *manifest.Pod) []types.UID {
	var ended []types.UID
	for _, earlier := range []*manifest.Pod{s.Desired, s.Leaving} {
		if earlier != nil && earlier != p {
			ended = append(ended, earlier.UID)
		}
	}
	for i := range s.Observed {
		ended = append(ended, s.Observed[i].UID)
	}
	return ended
}

// versionOf returns the version that a container was made from; nil if it is not known.
func (s Input) versionOf(container string) *manifest.Pod {
	inc, _ := runtime.FindContainer(s.Observed, container)
	if inc == nil {
		return nil
	}
	return plan.VersionOf(inc, s.Desired, s.Leaving)
}

// supplyFor returns the objects of one of the versions in s.
func (s Input) supplyFor(p *manifest.Pod) *refs.Resolved {
	if p != nil && p == s.Successor {
		return s.NextSupply
	}
	return s.Supply
}

// volumes returns the content of the volumes of a version.
func (s Input) volumes(p *manifest.Pod) render.Volumes {
	return render.Content{Pod: p, Refs: s.supplyFor(p), Node: *s.Node}
}

// writtenFiles returns the identity of the volume content that an effect has just written.
func (s Input) writtenFiles() string {
	if s.Supply == nil {
		return ""
	}
	return s.Supply.Files
}

// pullSecrets returns the existing pull secrets of a version, and a text for errors about
// the first one that is missing.
func (s Input) pullSecrets(p *manifest.Pod) (secrets []*v1.Secret, without string) {
	supply := s.supplyFor(p)
	for _, ref := range p.Spec.Spec.ImagePullSecrets {
		switch secret := supply.Secret(ref.Name); {
		case secret != nil:
			secrets = append(secrets, secret)
		case without == "" && ref.Name != "":
			without = fmt.Sprintf("; the Secret %q of its imagePullSecrets is not in %s", ref.Name, p.Origin.Source)
		}
	}
	return secrets, without
}
