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
	"podd/reconcile/plan"
	"podd/runtime"
)

// AddEphemeral adds ephemeral containers to the version in force, whose UID must be uid. It
// is called after RecoverEphemeral.
// containers must include those that the pod has already. Until they are created, only the
// journal has them, and News is set in the outputs. If dry is set, or after an error, nothing is added. The errors are
// Kubernetes API errors.
func (s State) AddEphemeral(uid types.UID, containers []v1.EphemeralContainer, dry bool, now time.Time) (State, Outputs, error) {
	t := s.begin(now)
	if !t.HasObserved { // it may have some that were not observed yet
		return s, Outputs{}, apierrors.NewServiceUnavailable("podd has not observed the runtime yet; try again")
	}
	err := t.addEphemeral(uid, containers, dry)
	return t.State, t.out, err
}

// RecoverEphemeral adds the ephemeral containers that an earlier podd created.
func (s State) RecoverEphemeral(now time.Time) (State, Outputs) {
	t := s.begin(now)
	t.recoverEphemeral()
	return t.end()
}

func (t *transition) addEphemeral(uid types.UID, containers []v1.EphemeralContainer, dry bool) error {
	p := t.In.Desired
	if p == nil || p.UID != uid {
		return ReplacedError(t.Key)
	}
	if p.Traits.StateAtSource {
		return InvalidEphemeral(t.Key, "the pod belongs to the cluster; add ephemeral containers there, with kubectl debug")
	}
	next, errs := decode.AddEphemeral(p, containers)
	if next != p && t.In.History.Finished.AppliesTo(p) {
		errs = append(errs, forbidden("the pod has finished; no container is started in it any more"))
	}
	if len(errs) > 0 {
		return invalid(t.Key, errs...)
	}
	if next == p || dry {
		return nil
	}
	for _, c := range next.Spec.Spec.EphemeralContainers[len(p.Spec.Spec.EphemeralContainers):] {
		// An earlier container of this name keeps its attempt number.
		t.container(c.Name, func(h *plan.ContainerHistory) { *h = plan.ContainerHistory{Attempt: h.Attempt, Restarts: h.Restarts} })
	}
	t.In.Desired, t.out.News = next, true
	t.write(p.UID, p.Hash)
	t.applyRefs()
	return nil
}

// WithdrawEphemeral undoes an AddEphemeral after which the journal could not be written.
// before is the state that AddEphemeral was called on. The failed write may have reached the
// disk, so the journal is written again: a later podd must not start containers that were
// refused.
func (s State) WithdrawEphemeral(before State, now time.Time) (State, Outputs) {
	t := s.begin(now)
	t.In.Desired, t.In.History.Containers = before.In.Desired, before.In.History.Containers
	t.write(t.In.Desired.UID, t.In.Desired.Hash)
	t.applyRefs()
	return t.end()
}

// ReplacedError is the API error about a pod that is being stopped or replaced.
func ReplacedError(key types.NamespacedName) error {
	return apierrors.NewConflict(v1.Resource("pods"), key.Name, errors.New("it is being stopped, or was replaced by another pod"))
}

// InvalidEphemeral is the API error about ephemeral containers that a pod must not have.
func InvalidEphemeral(key types.NamespacedName, why string) error {
	return invalid(key, forbidden(why))
}

func forbidden(why string) *field.Error {
	return field.Forbidden(field.NewPath("spec", "ephemeralContainers"), why)
}

func invalid(key types.NamespacedName, errs ...*field.Error) error {
	return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), key.Name, errs)
}

// recoverEphemeral adds the ephemeral containers that an earlier podd created to the
// version in force. Their specs are in annotations of the containers only. A created
// container is removed from the journal.
func (t *transition) recoverEphemeral() {
	var unknown []runtime.Container
	left := false
	for i := range t.In.Observed {
		inc := &t.In.Observed[i]
		// A sandbox that is being stopped belongs to a pod that was removed and is desired
		// again.
		if s := t.In.History.Stopping; !plan.Runs(t.In.Desired, inc) || s != nil && s.SandboxID == inc.ID {
			continue
		}
		for _, c := range inc.Containers {
			switch {
			case c.Annotations[runtime.AnnotationEphemeral] == "" || t.In.History.Containers[c.Name].Created:
				continue
			case !t.hasEphemeral(c.Name):
				unknown = append(unknown, c)
			default:
				left = true
			}
			t.container(c.Name, func(h *plan.ContainerHistory) { h.Created = true })
		}
	}
	if len(unknown) > 0 {
		// They were created already, so they come before those that were not.
		list := slices.Concat(ephemeralSpecs(unknown), t.In.Desired.Spec.Spec.EphemeralContainers)
		t.In.Desired = t.In.Desired.WithEphemeral(list)
	}
	if left {
		t.write(t.In.Desired.UID, t.In.Desired.Hash)
	}
}

// hasEphemeral reports whether the version in force has an ephemeral container of that
// name.
func (t *transition) hasEphemeral(name string) bool {
	return slices.ContainsFunc(t.In.Desired.Spec.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}

// ephemeralSpecs returns the specs of created ephemeral containers, in the order in which
// they were added. An annotation that cannot be decoded is not podd's.
func ephemeralSpecs(containers []runtime.Container) []v1.EphemeralContainer {
	slices.SortFunc(containers, func(a, b runtime.Container) int { return cmp.Compare(ephemeralIndex(&a), ephemeralIndex(&b)) })
	var all []v1.EphemeralContainer
	for i := range containers {
		var c v1.EphemeralContainer
		text := containers[i].Annotations[runtime.AnnotationEphemeral]
		if json.Unmarshal([]byte(text), &c) == nil && c.Name == containers[i].Name {
			all = append(all, c)
		}
	}
	return all
}

// ephemeralIndex returns the position of an ephemeral container in the pod's list.
func ephemeralIndex(c *runtime.Container) int {
	_, index := c.Kind()
	return index
}

// uncreatedEphemeral returns the ephemeral containers that were not created yet.
func (t *transition) uncreatedEphemeral() []v1.EphemeralContainer {
	if t.In.Desired.Traits.StateAtSource {
		return nil // the cluster stores them
	}
	return slices.DeleteFunc(slices.Clone(t.In.Desired.Spec.Spec.EphemeralContainers), func(c v1.EphemeralContainer) bool {
		return t.In.History.Containers[c.Name].Created
	})
}

// withEphemeral returns p, which is the version in force, with its ephemeral containers.
// For an unchanged p it returns the same pod.
func (t *transition) withEphemeral(p *manifest.Pod) *manifest.Pod {
	if p == t.withoutEphemeral {
		return t.In.Desired
	}
	if p.Traits.StateAtSource {
		return p
	}
	t.withoutEphemeral = p
	return p.WithEphemeral(t.In.Desired.Spec.Spec.EphemeralContainers)
}
