package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/plan"
	"podd/runtime"
)

// addition is a request to a worker to add ephemeral containers.
type addition struct {
	uid        types.UID // UID of the pod that they are for
	containers []v1.EphemeralContainer
	dryRun     bool
	reply      chan<- error // receives one error or nil, and must have room for it
}

// Debug sets the ephemeral containers of the pod with this name and UID. containers must
// include those that the pod has already. Debug returns when the worker has written them to
// the journal. If dry is set, it only validates them. Its errors are Kubernetes API errors.
func (r *Router) Debug(ctx context.Context, key types.NamespacedName, uid types.UID, containers []v1.EphemeralContainer, dry bool) error {
	reply := make(chan error, 1)
	var ended <-chan struct{}
	err := r.call(ctx, func() error {
		e := r.entries[key]
		if e == nil || e.order.desired == nil {
			return apierrors.NewNotFound(v1.Resource("pods"), key.Name)
		}
		if why := r.o.Limits.Machine.Refuses(e.order.desired.WithEphemeral(containers).Spec); why != "" {
			return invalid(key, field.Forbidden(field.NewPath("spec", "ephemeralContainers"), why))
		}
		o := e.order
		o.observed, o.pod = false, nil
		o.additions = []addition{{uid, containers, dry, reply}}
		ended = e.ended
		r.post(e, o)
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case err := <-reply:
		return err
	case <-ended:
		return replacedError(key)
	case <-ctx.Done():
		return fmt.Errorf("adding ephemeral containers to %s: %w", r.shortName(key), ctx.Err())
	}
}

func invalid(key types.NamespacedName, errs ...*field.Error) error {
	return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), key.Name, errs)
}

func replacedError(key types.NamespacedName) error {
	return apierrors.NewConflict(v1.Resource("pods"), key.Name, errors.New("it is being ended, or is another pod by now"))
}

// add adds ephemeral containers to the version in force. Until they are created, only the
// journal has them.
func (w *worker) add(a addition) error {
	if !w.hasObserved { // it may have some that were not observed yet
		return apierrors.NewServiceUnavailable("podd has not looked at the runtime yet; try again")
	}
	w.recoverEphemeral()
	p := w.in.Desired
	if p == nil || p.UID != a.uid {
		return replacedError(w.key)
	}
	if ofCluster(p) {
		return invalid(w.key, field.Forbidden(field.NewPath("spec", "ephemeralContainers"), "the pod is the cluster's; add them there, with kubectl debug"))
	}
	next, errs := decode.AddEphemeral(p, a.containers)
	if next != p && w.in.History.Finished.AppliesTo(p) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "ephemeralContainers"), "the pod has run to its end; nothing is started in it any more"))
	}
	if len(errs) > 0 {
		return invalid(w.key, errs...)
	}
	if next == p || a.dryRun {
		return nil
	}
	before := w.in.History.Containers
	for _, c := range next.Spec.Spec.EphemeralContainers[len(p.Spec.Spec.EphemeralContainers):] {
		// An earlier container of this name keeps its attempt number.
		w.container(c.Name, func(h *plan.ContainerHistory) { *h = plan.ContainerHistory{Attempt: h.Attempt, Restarts: h.Restarts} })
	}
	w.in.Desired = next
	if err := w.writeJournal(p.UID, p.Hash); err != nil {
		w.in.Desired, w.in.History.Containers = p, before
		// The failed write may have reached the disk. A later podd must not start
		// containers that were refused.
		return apierrors.NewInternalError(errors.Join(err, w.writeJournal(p.UID, p.Hash)))
	}
	w.applySupplies()
	return nil
}

// recoverEphemeral adds the ephemeral containers that an earlier podd created to the
// version in force. Their specs are in annotations of the containers only. A created
// container is removed from the journal.
func (w *worker) recoverEphemeral() {
	var unknown []runtime.Container
	left := false
	for i := range w.in.Observed {
		inc := &w.in.Observed[i]
		// A sandbox that is being stopped belongs to a pod that was removed and is desired
		// again.
		if s := w.in.History.Stopping; !plan.Runs(w.in.Desired, inc) || s != nil && s.SandboxID == inc.ID {
			continue
		}
		for _, c := range inc.Containers {
			switch {
			case c.Annotations[runtime.AnnotationEphemeral] == "" || w.in.History.Containers[c.Name].Created:
				continue
			case !w.hasEphemeral(c.Name):
				unknown = append(unknown, c)
			default:
				left = true
			}
			w.container(c.Name, func(h *plan.ContainerHistory) { h.Created = true })
		}
	}
	if len(unknown) > 0 {
		// They were created already, so they come before those that were not.
		list := slices.Concat(ephemeralSpecs(unknown), w.in.Desired.Spec.Spec.EphemeralContainers)
		w.in.Desired = w.in.Desired.WithEphemeral(list)
	}
	if left {
		w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash)
	}
}

// hasEphemeral reports whether the version in force has an ephemeral container of that
// name.
func (w *worker) hasEphemeral(name string) bool {
	return slices.ContainsFunc(w.in.Desired.Spec.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
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
func (w *worker) uncreatedEphemeral() []v1.EphemeralContainer {
	if ofCluster(w.in.Desired) {
		return nil // the cluster stores them
	}
	return slices.DeleteFunc(slices.Clone(w.in.Desired.Spec.Spec.EphemeralContainers), func(c v1.EphemeralContainer) bool {
		return w.in.History.Containers[c.Name].Created
	})
}

// withEphemeral returns p, which is the version in force, with its ephemeral containers.
// For an unchanged p it returns the same pod.
func (w *worker) withEphemeral(p *manifest.Pod) *manifest.Pod {
	if p == w.withoutEphemeral {
		return w.in.Desired
	}
	if ofCluster(p) {
		return p
	}
	w.withoutEphemeral = p
	return p.WithEphemeral(w.in.Desired.Spec.Spec.EphemeralContainers)
}
