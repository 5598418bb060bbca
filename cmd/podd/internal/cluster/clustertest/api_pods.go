package clustertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"podd/cmd/podd/internal/cluster/apiserver"
)

var podsResource = schema.GroupResource{Resource: "pods"}

// podKey returns the key of the pod in the path of a request:
// /api/v1/namespaces/NAMESPACE/pods/NAME…
func podKey(q *http.Request) (key types.NamespacedName) {
	words := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	if len(words) > 5 {
		key = types.NamespacedName{Namespace: words[3], Name: words[5]}
	}
	return key
}

// handlePod handles a request for pods. It supports only the requests that podd sends.
func (f *API) handlePod(q *http.Request, verb string, body []byte) *http.Response {
	key := podKey(q)
	old := f.Pods[key]
	switch {
	case verb == "GET":
		return f.podList()
	case verb == "POST":
		return f.postPod(MustDecode[v1.Pod](body))
	case old == nil:
		return ErrorResponse(apierrors.NewNotFound(podsResource, key.Name))
	case verb == "PATCH":
		return f.patchPod(old, body)
	}
	if o := MustDecode[metav1.DeleteOptions](body); *o.Preconditions.UID != old.UID || *o.GracePeriodSeconds != 0 {
		return ErrorResponse(apierrors.NewConflict(podsResource, key.Name, errors.New("UID differs")))
	}
	if len(old.Finalizers) > 0 {
		old = old.DeepCopy()
		old.DeletionTimestamp, old.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(0))
		f.PutPod(old, "MODIFIED")
		return Response(200, f.Pods[key])
	}
	f.PutPod(old, "DELETED")
	return Response(200, old)
}

// postPod creates a pod. podd only creates mirror pods.
func (f *API) postPod(p *v1.Pod) *http.Response {
	if f.Pods[apiserver.ObjectKey(p)] != nil {
		return ErrorResponse(apierrors.NewAlreadyExists(podsResource, p.Name))
	}
	p.UID, p.Status = types.UID(fmt.Sprintf("mirror-%d", f.Version)), v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}
	f.PutPod(p, "ADDED")
	return Response(201, f.Pods[apiserver.ObjectKey(p)])
}

// patchPod patches the status of a pod.
func (f *API) patchPod(old *v1.Pod, body []byte) *http.Response {
	before, _ := json.Marshal(old)
	after, err := strategicpatch.StrategicMergePatch(before, body, v1.Pod{})
	if err != nil {
		return ErrorResponse(apierrors.NewBadRequest(err.Error()))
	}
	next := MustDecode[v1.Pod](after)
	if next.UID != old.UID {
		return ErrorResponse(apierrors.NewConflict(podsResource, old.Name, errors.New("UID differs")))
	}
	if f.DropPodFields != nil {
		f.DropPodFields(next)
	}
	f.PutPod(next, "MODIFIED")
	return Response(200, f.Pods[apiserver.ObjectKey(next)])
}
