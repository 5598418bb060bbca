package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
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
func (f *fakeAPI) handlePod(q *http.Request, verb string, body []byte) *http.Response {
	key := podKey(q)
	old := f.pods[key]
	switch {
	case verb == "GET":
		return f.podList()
	case verb == "POST":
		return f.postPod(clustertest.MustDecode[v1.Pod](body))
	case old == nil:
		return clustertest.ErrorResponse(apierrors.NewNotFound(podsResource, key.Name))
	case verb == "PATCH":
		return f.patchPod(old, body)
	}
	if o := clustertest.MustDecode[metav1.DeleteOptions](body); *o.Preconditions.UID != old.UID || *o.GracePeriodSeconds != 0 {
		return clustertest.ErrorResponse(apierrors.NewConflict(podsResource, key.Name, errors.New("UID differs")))
	}
	if len(old.Finalizers) > 0 {
		old = old.DeepCopy()
		old.DeletionTimestamp, old.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(0))
		f.putPod(old, "MODIFIED")
		return clustertest.Response(200, f.pods[key])
	}
	f.putPod(old, "DELETED")
	return clustertest.Response(200, old)
}

// postPod creates a pod. podd only creates mirror pods.
func (f *fakeAPI) postPod(p *v1.Pod) *http.Response {
	if f.pods[apiserver.ObjectKey(p)] != nil {
		return clustertest.ErrorResponse(apierrors.NewAlreadyExists(podsResource, p.Name))
	}
	p.UID, p.Status = types.UID(fmt.Sprintf("mirror-%d", f.version)), v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}
	f.putPod(p, "ADDED")
	return clustertest.Response(201, f.pods[apiserver.ObjectKey(p)])
}

// patchPod patches the status of a pod.
func (f *fakeAPI) patchPod(old *v1.Pod, body []byte) *http.Response {
	before, _ := json.Marshal(old)
	after, err := strategicpatch.StrategicMergePatch(before, body, v1.Pod{})
	if err != nil {
		return clustertest.ErrorResponse(apierrors.NewBadRequest(err.Error()))
	}
	next := clustertest.MustDecode[v1.Pod](after)
	if next.UID != old.UID {
		return clustertest.ErrorResponse(apierrors.NewConflict(podsResource, old.Name, errors.New("UID differs")))
	}
	if f.dropFields != nil {
		f.dropFields(next)
	}
	f.putPod(next, "MODIFIED")
	return clustertest.Response(200, f.pods[apiserver.ObjectKey(next)])
}

// handleEvent creates or patches an Event.
func (f *fakeAPI) handleEvent(q *http.Request, verb string, body []byte) *http.Response {
	if f.events == nil {
		f.events = map[string]*v1.Event{}
	}
	e := clustertest.MustDecode[v1.Event](body)
	if verb == "PATCH" {
		old := f.events[path.Base(q.URL.Path)]
		if old == nil {
			return clustertest.ErrorResponse(apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, path.Base(q.URL.Path)))
		}
		e.ObjectMeta, e.Reason, e.InvolvedObject = old.ObjectMeta, old.Reason, old.InvolvedObject
	} else if f.events[e.Name] != nil {
		return clustertest.ErrorResponse(apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name))
	}
	e.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}
	f.events = maps.Clone(f.events)
	f.events[e.Name] = e
	return clustertest.Response(200, e)
}
