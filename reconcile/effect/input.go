package effect

import (
	"cmp"
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

// An Input contains the values from the state of a worker that an effect reads. It is immutable.
type Input struct {
	Key             types.NamespacedName
	Desired         *manifest.Pod // see plan.WithAllocatedSizes
	Actual          *manifest.Pod // see plan.WithActualSizes
	IsResizePending bool          // see plan.IsResizePending
	Successor       *manifest.Pod
	Previous        *manifest.Pod  // see plan.Input
	Refs            *refs.Resolved // objects that Desired refers to
	SuccessorRefs   *refs.Resolved // objects that Successor refers to
	Observed        []runtime.Incarnation
	Node            *render.Node
	UserIDs         runtime.IDRange // host IDs of a new sandbox; see render.SandboxInput
	Permit          Permit          // permit of a plan.StartContainer
	// OnPull reports to the worker that the pull of an image begins. The field Image of the action is
	// the name of this image, which may be the image of an image volume.
	OnPull func(context.Context, plan.EnsureImage, event.Event)
}

// checkedVersion returns the version whose volumes a plan.CheckVolumes action checks: the successor
// or the desired version.
func (s Input) checkedVersion(a plan.CheckVolumes) *manifest.Pod {
	if p := s.Successor; p != nil && p.UID == a.UID && p.Hash == a.Hash {
		return p
	}
	return s.Desired
}

// earlierUIDs returns the UIDs of the versions that must stop before p is started.
func (s Input) earlierUIDs(p *manifest.Pod) []types.UID {
	var uids []types.UID
	for _, version := range []*manifest.Pod{s.Desired, s.Previous} {
		if version != nil && version != p {
			uids = append(uids, version.UID)
		}
	}
	for i := range s.Observed {
		uids = append(uids, s.Observed[i].UID)
	}
	return uids
}

// versionOf returns the version from which the container with ID id was created; nil if the version
// is unknown.
func (s Input) versionOf(id string) *manifest.Pod {
	inc, _ := runtime.FindContainer(s.Observed, id)
	if inc == nil {
		return nil
	}
	return plan.FindVersion(inc, s.Desired, s.Previous)
}

// refsFor returns the objects that version p refers to. p is the desired version or its
// successor.
func (s Input) refsFor(p *manifest.Pod) *refs.Resolved {
	if p != nil && p == s.Successor {
		return s.SuccessorRefs
	}
	return s.Refs
}

// volumes returns an object that computes the content of the volumes of version p.
func (s Input) volumes(p *manifest.Pod) render.Volumes {
	return render.PodVolumes{Pod: p, Refs: s.refsFor(p), Node: *s.Node}
}

// filesDigest returns Refs.FilesDigest, which identifies the objects whose content an effect writes
// into the volumes of the desired version. It returns "" if the content depends on no object.
func (s Input) filesDigest() string {
	if s.Refs == nil {
		return ""
	}
	return s.Refs.FilesDigest
}

// pullSecrets returns the existing Secrets of the imagePullSecrets of version p. missingSuffix is a
// suffix for the error of a failed pull. It contains the name of the first Secret that does not
// exist, and is "" if all Secrets exist.
func (s Input) pullSecrets(p *manifest.Pod) (secrets []*v1.Secret, missingSuffix string) {
	resolved := s.refsFor(p)
	for _, ref := range p.Object.Spec.ImagePullSecrets {
		switch secret := resolved.Secret(ref.Name); {
		case secret != nil:
			secrets = append(secrets, secret)
		case missingSuffix == "" && ref.Name != "":
			missingSuffix = fmt.Sprintf("; the Secret %q in the pod's imagePullSecrets is not defined in %s", ref.Name, cmp.Or(p.Origin.Source, "any of the files"))
		}
	}
	return secrets, missingSuffix
}
