package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/order"
	"podd/reconcile/plan"
	"podd/runtime"
)

// AddEphemeral sets the ephemeral containers of the version in force, whose UID must be uid.
// containers must include the ephemeral containers that the pod already has. Outputs.NeedsReport
// reports whether containers were added. If dry is true, AddEphemeral only validates containers.
// The errors are Kubernetes API errors. RecoverEphemeral must be called before AddEphemeral.
func (s *State) AddEphemeral(uid types.UID, containers []v1.EphemeralContainer, dry bool, now time.Time) (*State, Outputs, error) {
	t := s.begin(now)
	if !t.HasObserved { // the pod may have ephemeral containers that were not observed yet
		return s, Outputs{}, apierrors.NewServiceUnavailable("podd has not observed the runtime yet; try again")
	}
	err := t.addEphemeral(uid, containers, dry)
	return t.State, t.outputs, err
}

// RecoverEphemeral adds to the version in force the ephemeral containers that an earlier podd
// created.
func (s *State) RecoverEphemeral(now time.Time) (*State, Outputs) {
	t := s.begin(now)
	t.recoverEphemeral()
	return t.end()
}

// addEphemeral implements AddEphemeral, except for the check whether the runtime was observed.
func (t *transition) addEphemeral(uid types.UID, containers []v1.EphemeralContainer, dry bool) error {
	p := t.PlanInput.Desired
	if p == nil || p.UID != uid {
		return NewReplacedError(t.Key)
	}
	if p.Traits.HasStateAtSource {
		return NewInvalidEphemeralError(t.Key, "the pod belongs to the cluster; add ephemeral containers through its API server, with \"kubectl debug\"")
	}
	newVersion, errs := decode.AddEphemeral(p, containers)
	if newVersion != p && t.PlanInput.History.Finished.AppliesTo(p) {
		errs = append(errs, forbidden("the pod has finished; no container is started in it any more"))
	}
	if len(errs) > 0 {
		return invalid(t.Key, errs...)
	}
	if newVersion == p || dry {
		return nil
	}
	for _, c := range newVersion.Object.Spec.EphemeralContainers[len(p.Object.Spec.EphemeralContainers):] {
		// Keep the attempt number, so that the attempt numbers of an earlier container with
		// this name are not used again.
		t.changeContainer(c.Name, func(h *plan.ContainerHistory) { *h = plan.ContainerHistory{Attempt: h.Attempt, Restarts: h.Restarts} })
	}
	t.PlanInput.Desired, t.outputs.NeedsReport = newVersion, true
	t.addWrite(p.UID, p.Hash)
	t.applyRefs()
	return nil
}

// WithdrawEphemeral removes the containers that AddEphemeral has added, because writing the journal
// failed. oldState is the state on which AddEphemeral was called. The failed write may have reached
// the disk. Therefore the journal is written again, so that a later podd does not start the removed
// containers.
func (s *State) WithdrawEphemeral(oldState *State, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	t.PlanInput.Desired, t.PlanInput.History.Containers = oldState.PlanInput.Desired, oldState.PlanInput.History.Containers
	t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
	t.applyRefs()
	return t.end()
}

// NewReplacedError returns the API error for a pod that is being stopped or was replaced.
func NewReplacedError(key types.NamespacedName) error {
	return apierrors.NewConflict(v1.Resource("pods"), key.Name, errors.New("the pod is being stopped, or was replaced by another pod"))
}

// NewInvalidEphemeralError returns the API error for ephemeral containers that the pod must not
// have. reason is the reason for users.
func NewInvalidEphemeralError(key types.NamespacedName, reason string) error {
	return invalid(key, forbidden(reason))
}

func forbidden(reason string) *field.Error {
	return field.Forbidden(field.NewPath("spec", "ephemeralContainers"), reason)
}

func invalid(key types.NamespacedName, errs ...*field.Error) error {
	return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), key.Name, errs)
}

// recoverEphemeral adds to the version in force the ephemeral containers that an earlier podd
// created. It reads their specs from the annotations of the containers. If it finds that a
// container in the journal was created, it writes the journal without the container.
func (t *transition) recoverEphemeral() {
	var recovered []runtime.Container
	isJournalOutdated := false
	for i := range t.PlanInput.Observed {
		inc := &t.PlanInput.Observed[i]
		// Skip the earlier sandbox of a pod that was removed and is desired again. This sandbox is
		// still being stopped.
		if s := t.PlanInput.History.Stopping; !plan.IsCreatedFrom(inc, t.PlanInput.Desired) || s != nil && s.SandboxID == inc.ID {
			continue
		}
		for _, c := range inc.Containers {
			switch {
			case c.Annotations[runtime.AnnotationEphemeralContainer] == "" || t.PlanInput.History.Containers[c.Name].EphemeralCreated:
				continue
			case !t.hasEphemeral(c.Name):
				recovered = append(recovered, c)
			default:
				isJournalOutdated = true
			}
			t.changeContainer(c.Name, func(h *plan.ContainerHistory) { h.EphemeralCreated = true })
		}
	}
	if len(recovered) > 0 {
		// Containers that were created come before containers that were not created.
		specs := slices.Concat(ephemeralSpecs(recovered), t.PlanInput.Desired.Object.Spec.EphemeralContainers)
		t.PlanInput.Desired = t.PlanInput.Desired.WithEphemeral(specs)
	}
	if isJournalOutdated {
		t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
	}
}

// hasEphemeral reports whether the version in force has an ephemeral container with this name.
func (t *transition) hasEphemeral(name string) bool {
	return slices.ContainsFunc(t.PlanInput.Desired.Object.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}

// ephemeralSpecs returns the specs of created ephemeral containers, in the order in which they were
// added. It omits a container whose annotation cannot be decoded, because podd did not create that
// container.
func ephemeralSpecs(containers []runtime.Container) []v1.EphemeralContainer {
	order.Slice(containers, func(a, b runtime.Container) int { return cmp.Compare(ephemeralIndex(&a), ephemeralIndex(&b)) })
	var specs []v1.EphemeralContainer
	for i := range containers {
		var c v1.EphemeralContainer
		encoded := containers[i].Annotations[runtime.AnnotationEphemeralContainer]
		if json.Unmarshal([]byte(encoded), &c) == nil && c.Name == containers[i].Name {
			specs = append(specs, c)
		}
	}
	return specs
}

// ephemeralIndex returns the index of a created ephemeral container in the list of its pod.
func ephemeralIndex(c *runtime.Container) int {
	_, index := c.Kind()
	return index
}

// uncreatedEphemeral returns the ephemeral containers that were not created yet.
func (t *transition) uncreatedEphemeral() []v1.EphemeralContainer {
	if t.PlanInput.Desired.Traits.HasStateAtSource {
		return nil // podd stores no ephemeral containers of a cluster's pod, because the cluster stores them
	}
	return slices.DeleteFunc(slices.Clone(t.PlanInput.Desired.Object.Spec.EphemeralContainers), func(c v1.EphemeralContainer) bool {
		return t.PlanInput.History.Containers[c.Name].EphemeralCreated
	})
}

// withEphemeral returns p, the version in force as the router sent it, with the ephemeral
// containers that podd added. If the router sent the same pointer before, withEphemeral returns
// t.PlanInput.Desired.
func (t *transition) withEphemeral(p *manifest.Pod) *manifest.Pod {
	if p == t.versionWithoutEphemeral {
		return t.PlanInput.Desired
	}
	if p.Traits.HasStateAtSource {
		return p
	}
	t.versionWithoutEphemeral = p
	return p.WithEphemeral(t.PlanInput.Desired.Object.Spec.EphemeralContainers)
}
