package kube

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
)

// Debugger has ephemeral containers started in pods that run.
type Debugger interface {
	// Debug has the pod of this name and UID have these ephemeral containers, the
	// ones it has already among them, and returns once that is remembered. With dry
	// it only says whether it would. An error is one of Kubernetes: NotFound for
	// another pod, Invalid for what is no addition or no valid one.
	Debug(ctx context.Context, pod types.NamespacedName, uid types.UID, containers []v1.EphemeralContainer, dry bool) error
}

// shownWithin is how long the answer waits until the pod shows what was added.
const shownWithin = 10 * time.Second

// addEphemeral answers PUT and PATCH of a pod's ephemeral containers. Of the pod
// that is sent, nothing else counts. One is answered after the other: the version
// that each is based on is the newest.
func (a *API) addEphemeral(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	dry, err := dryRun(r.URL.Query()["dryRun"])
	var change func(server.Object) ([]byte, error)
	if err == nil {
		change, err = readChange(w, r)
	}
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	select {
	case a.debugging <- struct{}{}:
		defer func() { <-a.debugging }()
	case <-r.Context().Done():
		return
	}
	e, err := a.find(r, res, i)
	var p *v1.Pod
	if err == nil {
		p, err = changed(w, r, e, change)
	}
	if err == nil {
		e, err = a.debug(r, res, i, e, p.Spec.EphemeralContainers, dry)
	}
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	reply(w, e.encoded(), nil)
}

// debug returns the pod as it is shown with the containers.
func (a *API) debug(r *http.Request, res *resource, i request.Info, was *entry, containers []v1.EphemeralContainer, dry bool) (*entry, error) {
	key, uid := types.NamespacedName(was.key), was.object.GetUID()
	if err := a.Debugger.Debug(r.Context(), key, uid, containers, dry); err != nil {
		return nil, err
	}
	if dry {
		p := *was.object.(*v1.Pod)
		p.Spec.EphemeralContainers = containers
		return res.entry(item{was.key, &p}, was.rev), nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), shownWithin)
	defer cancel()
	for {
		more := a.State.Changed(a.State.View().Revision)
		e, err := a.find(r, res, i)
		if err != nil || shows(e.object.(*v1.Pod), containers) {
			return e, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, apierrors.NewTimeoutError("the ephemeral containers are taken, and not shown yet", 1)
		}
	}
}

func shows(p *v1.Pod, containers []v1.EphemeralContainer) bool {
	return !slices.ContainsFunc(containers, func(c v1.EphemeralContainer) bool {
		return !slices.ContainsFunc(p.Spec.EphemeralContainers, func(has v1.EphemeralContainer) bool { return has.Name == c.Name })
	})
}

// readChange returns what the body makes of a pod.
func readChange(w http.ResponseWriter, r *http.Request) (func(server.Object) ([]byte, error), error) {
	if r.Method == http.MethodPatch {
		p, err := readPatch(w, r)
		return p.apply, err
	}
	kind, _, _ := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), "application/json"))
	if kind != "application/json" {
		return nil, unsupported("application/json")
	}
	body, err := readBody(w, r)
	return func(server.Object) ([]byte, error) { return body, nil }, err
}

// changed is the pod as the client wants it, who must have meant this very one.
func changed(w http.ResponseWriter, r *http.Request, e *entry, change func(server.Object) ([]byte, error)) (*v1.Pod, error) {
	body, err := change(e.object)
	if err != nil {
		return nil, err
	}
	p := &v1.Pod{}
	strict, err := json.UnmarshalStrict(body, p)
	if err != nil {
		return nil, apierrors.NewBadRequest("reading the pod: " + err.Error())
	}
	if err := tellStrange(w, r.URL.Query().Get("fieldValidation"), strict); err != nil {
		return nil, err
	}
	gr := v1.Resource("pods")
	switch {
	case p.Name != e.key.Name || p.Namespace != e.key.Namespace:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the pod is %.80q in the path and %.80q in the body", e.key, server.Key{Namespace: p.Namespace, Name: p.Name}))
	case p.UID != "" && p.UID != e.object.GetUID():
		return nil, apierrors.NewConflict(gr, e.key.Name, fmt.Errorf("the UID of the request is %.80q, and that of the pod %q: it is another pod by now", p.UID, e.object.GetUID()))
	case p.ResourceVersion != "" && p.ResourceVersion != e.object.GetResourceVersion():
		return nil, modified(gr, e.key.Name)
	}
	return p, nil
}
