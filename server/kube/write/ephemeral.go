package write

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// A Debugger adds ephemeral containers to running pods.
type Debugger interface {
	// SetEphemeralContainers sets the ephemeral containers of the pod with this name and UID. The
	// containers must include the existing ephemeral containers. SetEphemeralContainers returns
	// when the change is stored. If dry is true, it only validates the request. Errors are API
	// errors: NotFound if no pod has the name and UID, and Invalid if the containers are invalid or
	// existing containers are changed.
	SetEphemeralContainers(ctx context.Context, pod types.NamespacedName, uid types.UID, containers []v1.EphemeralContainer, dry bool) error
}

// ephemeralTimeout is the maximum time for which a request waits until the View contains the added
// containers.
const ephemeralTimeout = 10 * time.Second

// addEphemeral serves PUT and PATCH of a pod's ephemeral containers. All other fields of the
// pod in the body are ignored. Requests are serialized, so that each request changes the
// newest version.
func (h *Handler) addEphemeral(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) error {
	isDryRun, err := parseDryRun(r.URL.Query()["dryRun"])
	if err != nil {
		return err
	}
	change, err := readChange(w, r)
	if err != nil {
		return err
	}
	unlock, err := lock(r.Context(), h.debugLock)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := h.objects.Find(r.Context(), res, res.Key(i.Namespace, i.Name))
	if err != nil {
		return err
	}
	p, err := decodePod(w, r, e, change)
	if err != nil {
		return err
	}
	e, err = h.addContainers(r.Context(), res, e, p.Spec.EphemeralContainers, isDryRun)
	if err != nil {
		return err
	}
	server.ReplyJSON(w, http.StatusOK, e.JSON())
	return nil
}

// addContainers adds the containers and returns the entry of the pod as soon as the View
// contains the containers.
func (h *Handler) addContainers(ctx context.Context, res *resource.Definition, oldEntry *resource.Entry, containers []v1.EphemeralContainer, isDryRun bool) (*resource.Entry, error) {
	key, uid := types.NamespacedName(oldEntry.Key), oldEntry.Object.GetUID()
	if err := h.debugger.SetEphemeralContainers(ctx, key, uid, containers, isDryRun); err != nil {
		return nil, err
	}
	if isDryRun {
		p := *oldEntry.Object.(*v1.Pod)
		p.Spec.EphemeralContainers = containers
		return res.NewEntry(resource.Item{Key: oldEntry.Key, Object: &p}, oldEntry.Rev), nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, ephemeralTimeout)
	defer cancel()
	for {
		changed := h.state.Changed(h.state.View().Revision)
		e, err := h.objects.Find(ctx, res, oldEntry.Key)
		if err != nil || hasContainers(e.Object.(*v1.Pod), containers) {
			return e, err
		}
		select {
		case <-changed:
		case <-waitCtx.Done():
			return nil, apierrors.NewTimeoutError("the ephemeral containers are stored, but the pod does not show them yet", 1)
		}
	}
}

func hasContainers(p *v1.Pod, containers []v1.EphemeralContainer) bool {
	return !slices.ContainsFunc(containers, func(c v1.EphemeralContainer) bool {
		return !slices.ContainsFunc(p.Spec.EphemeralContainers, func(e v1.EphemeralContainer) bool { return e.Name == c.Name })
	})
}

// readChange returns a function that applies the body to a pod.
func readChange(w http.ResponseWriter, r *http.Request) (func(server.Object) ([]byte, error), error) {
	if r.Method == http.MethodPatch {
		p, err := readPatch(w, r)
		return p.apply, err
	}
	kind, _, _ := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), "application/json"))
	if kind != "application/json" {
		return nil, request.NewUnsupportedMediaTypeError("application/json")
	}
	body, err := readBody(w, r)
	return func(server.Object) ([]byte, error) { return body, nil }, err
}

// decodePod returns the pod of e after the change. It returns an error if the changed pod
// has another name, UID or resourceVersion.
func decodePod(w http.ResponseWriter, r *http.Request, e *resource.Entry, change func(server.Object) ([]byte, error)) (*v1.Pod, error) {
	body, err := change(e.Object)
	if err != nil {
		return nil, err
	}
	p := &v1.Pod{}
	strictErrs, err := json.UnmarshalStrict(body, p)
	if err != nil {
		return nil, apierrors.NewBadRequest("reading the pod: " + err.Error())
	}
	if err := reportUnknown(w, r.URL.Query().Get("fieldValidation"), strictErrs); err != nil {
		return nil, err
	}
	gr := v1.Resource("pods")
	switch {
	case p.Name != e.Key.Name || p.Namespace != e.Key.Namespace:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the pod in the path is %.80q, but the pod in the body is %.80q", e.Key, server.Key{Namespace: p.Namespace, Name: p.Name}))
	case p.UID != "" && p.UID != e.Object.GetUID():
		return nil, apierrors.NewConflict(gr, e.Key.Name, fmt.Errorf("precondition failed: UID in precondition: %.80s, UID in object meta: %s", p.UID, e.Object.GetUID()))
	case p.ResourceVersion != "" && p.ResourceVersion != e.Object.GetResourceVersion():
		return nil, newConflictError(gr, e.Key.Name)
	}
	return p, nil
}
