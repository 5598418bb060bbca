package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// addition asks a worker for ephemeral containers.
type addition struct {
	uid        types.UID // of the pod they are meant for
	containers []v1.EphemeralContainer
	dry        bool
	reply      chan<- error // has room for it
}

// Debug has the pod of this name and UID have these ephemeral containers, those
// that it has among them, and returns once its worker has remembered them. With
// dry it only says whether it would. Its errors are Kubernetes' own.
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
		o.seen, o.pod = false, nil
		o.added = []addition{{uid, containers, dry, reply}}
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
		return gone(key)
	case <-ctx.Done():
		return fmt.Errorf("adding ephemeral containers to %s: %w", r.short(key), ctx.Err())
	}
}

func invalid(key types.NamespacedName, errs ...*field.Error) error {
	return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), key.Name, errs)
}

func gone(key types.NamespacedName) error {
	return apierrors.NewConflict(v1.Resource("pods"), key.Name, errors.New("it is being ended, or is another pod by now"))
}

// add adds ephemeral containers to the version in force. Until they are made,
// nobody but its journal knows of them.
func (w *worker) add(a addition) error {
	if !w.looked { // it may have some of which nothing was seen yet
		return apierrors.NewServiceUnavailable("podd has not looked at the runtime yet; try again")
	}
	w.meet()
	p := w.in.Desired
	if p == nil || p.UID != a.uid {
		return gone(w.key)
	}
	if ofCluster(p) {
		return invalid(w.key, field.Forbidden(field.NewPath("spec", "ephemeralContainers"), "the pod is the cluster's; add them there, with kubectl debug"))
	}
	next, errs := p.AddEphemeral(a.containers)
	if next != p && w.in.History.Finished.Of(p) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "ephemeralContainers"), "the pod has run to its end; nothing is started in it any more"))
	}
	if len(errs) > 0 {
		return invalid(w.key, errs...)
	}
	if next == p || a.dry {
		return nil
	}
	before := w.in.History.Containers
	for _, c := range next.Spec.Spec.EphemeralContainers[len(p.Spec.Spec.EphemeralContainers):] {
		// One of the name may have been there; its number stays taken.
		w.container(c.Name, func(h *plan.ContainerHistory) { *h = plan.ContainerHistory{Attempt: h.Attempt} })
	}
	w.in.Desired = next
	if err := w.remember(p.UID, p.Hash, true); err != nil {
		w.in.Desired, w.in.History.Containers = p, before
		// What failed may be on disk all the same; a podd that comes after must not
		// start what was refused.
		return apierrors.NewInternalError(errors.Join(err, w.remember(p.UID, p.Hash, true)))
	}
	w.look()
	return nil
}

// meet takes over what the containers of the version in force were made from, as
// they say themselves: of those that an earlier life of podd made nobody else
// knows. What was made leaves the journal.
func (w *worker) meet() {
	var unknown []runtime.Container
	left := false
	for i := range w.in.Observed {
		inc := &w.in.Observed[i]
		// What is being ended was of a pod that was removed, and is wanted anew.
		if s := w.in.History.Stopping; !plan.Runs(w.in.Desired, inc) || s != nil && s.SandboxID == inc.ID {
			continue
		}
		for _, c := range inc.Containers {
			switch {
			case c.Annotations[runtime.AnnotationEphemeral] == "" || w.in.History.Containers[c.Name].Made:
				continue
			case !w.has(c.Name):
				unknown = append(unknown, c)
			default:
				left = true
			}
			w.container(c.Name, func(h *plan.ContainerHistory) { h.Made = true })
		}
	}
	if len(unknown) > 0 {
		// They were made, and so come before those that were not.
		list := slices.Concat(specsOf(unknown), w.in.Desired.Spec.Spec.EphemeralContainers)
		w.in.Desired = w.in.Desired.WithEphemeral(list)
	}
	if left {
		w.rememberSoon(w.in.Desired.UID, w.in.Desired.Hash)
	}
}

func (w *worker) has(name string) bool {
	return slices.ContainsFunc(w.in.Desired.Spec.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}

// specsOf is what containers were made from, in the order they were added. What
// does not decode was not written by podd.
func specsOf(containers []runtime.Container) []v1.EphemeralContainer {
	slices.SortFunc(containers, func(a, b runtime.Container) int { return cmp.Compare(placeOf(&a), placeOf(&b)) })
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

func placeOf(c *runtime.Container) int {
	_, place, _ := strings.Cut(c.Annotations[runtime.AnnotationKind], ":")
	n, _ := strconv.Atoi(place)
	return n
}

// unmade are the ephemeral containers that no container tells of.
func (w *worker) unmade() []v1.EphemeralContainer {
	if ofCluster(w.in.Desired) {
		return nil // the cluster has them
	}
	return slices.DeleteFunc(slices.Clone(w.in.Desired.Spec.Spec.EphemeralContainers), func(c v1.EphemeralContainer) bool {
		return w.in.History.Containers[c.Name].Made
	})
}

// added is a wanted version with the ephemeral containers of the one in force,
// which is the same. Equal orders make one pod of it.
func (w *worker) added(p *manifest.Pod) *manifest.Pod {
	if p == w.bare {
		return w.in.Desired
	}
	if ofCluster(p) {
		return p
	}
	w.bare = p
	return p.WithEphemeral(w.in.Desired.Spec.Spec.EphemeralContainers)
}
