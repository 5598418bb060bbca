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
)

var podsResource = schema.GroupResource{Resource: "pods"}

// podKey is whom a request is about: /api/v1/namespaces/NAMESPACE/pods/NAME…
func podKey(q *http.Request) (key types.NamespacedName) {
	words := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	if len(words) > 5 {
		key = types.NamespacedName{Namespace: words[3], Name: words[5]}
	}
	return key
}

// podRequest is what an API server does with pods, as far as one podd asks for it.
func (f *fakeAPI) podRequest(q *http.Request, verb string, body []byte) *http.Response {
	key := podKey(q)
	was := f.pods[key]
	switch {
	case verb == "GET":
		return f.podList()
	case verb == "POST":
		return f.podPost(parsed[v1.Pod](body))
	case was == nil:
		return refusal(apierrors.NewNotFound(podsResource, key.Name))
	case verb == "PATCH":
		return f.podPatch(was, body)
	}
	if o := parsed[metav1.DeleteOptions](body); *o.Preconditions.UID != was.UID || *o.GracePeriodSeconds != 0 {
		return refusal(apierrors.NewConflict(podsResource, key.Name, errors.New("another uid")))
	}
	if len(was.Finalizers) > 0 {
		was = was.DeepCopy()
		was.DeletionTimestamp, was.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(0))
		f.putPod(was, "MODIFIED")
		return answer(200, f.pods[key])
	}
	f.putPod(was, "DELETED")
	return answer(200, was)
}

func (f *fakeAPI) podPost(p *v1.Pod) *http.Response {
	if f.pods[keyOf(p)] != nil {
		return refusal(apierrors.NewAlreadyExists(podsResource, p.Name))
	}
	p.UID, p.Status = types.UID(fmt.Sprintf("mirror-%d", f.version)), v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}
	f.putPod(p, "ADDED")
	return answer(201, f.pods[keyOf(p)])
}

func (f *fakeAPI) podPatch(was *v1.Pod, body []byte) *http.Response {
	before, _ := json.Marshal(was)
	after, err := strategicpatch.StrategicMergePatch(before, body, v1.Pod{})
	if err != nil {
		return refusal(apierrors.NewBadRequest(err.Error()))
	}
	is := parsed[v1.Pod](after)
	if is.UID != was.UID {
		return refusal(apierrors.NewConflict(podsResource, was.Name, errors.New("another uid")))
	}
	if f.drops != nil {
		f.drops(is)
	}
	f.putPod(is, "MODIFIED")
	return answer(200, f.pods[keyOf(is)])
}

func (f *fakeAPI) eventRequest(q *http.Request, verb string, body []byte) *http.Response {
	if f.events == nil {
		f.events = map[string]*v1.Event{}
	}
	e := parsed[v1.Event](body)
	if verb == "PATCH" {
		was := f.events[path.Base(q.URL.Path)]
		if was == nil {
			return refusal(apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, path.Base(q.URL.Path)))
		}
		e.ObjectMeta, e.Reason, e.InvolvedObject = was.ObjectMeta, was.Reason, was.InvolvedObject
	} else if f.events[e.Name] != nil {
		return refusal(apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name))
	}
	e.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}
	f.events = maps.Clone(f.events)
	f.events[e.Name] = e
	return answer(200, e)
}
