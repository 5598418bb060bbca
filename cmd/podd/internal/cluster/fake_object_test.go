package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// lookedUp are the resources that fakeObjects has, with their kinds.
var lookedUp = map[string]string{
	"configmaps": "ConfigMap", "secrets": "Secret", "services": "Service", "serviceaccounts": "ServiceAccount",
	"persistentvolumeclaims": "PersistentVolumeClaim", "persistentvolumes": "PersistentVolume", "runtimeclasses": "RuntimeClass",
	"csidrivers": "CSIDriver", "csinodes": "CSINode", "volumeattachments": "VolumeAttachment",
}

// fakeObjects are what pods refer to. The fakeAPI's mu guards it.
type fakeObjects struct {
	have     map[string]object // by "configmaps/default/conf"
	requests []authentication.TokenRequest
	noTokens bool
	ahead    time.Duration // this machine's clock, of the API server's
}

// where is of a request the resource, and the name, the subresource and the namespace
// in its path.
func where(q *http.Request) (resource, name, sub, namespace string) {
	path := strings.Split(strings.TrimPrefix(q.URL.Path, "/"), "/")
	path = path[slices.Index(path, "v1")+1:]
	if path[0] == "namespaces" && len(path) > 2 {
		namespace, path = path[1], path[2:]
	}
	path = append(path, "", "")
	return path[0], path[1], path[2], namespace
}

// object answers for what is looked up; nil for all else. The caller holds mu.
func (f *fakeAPI) object(q *http.Request, verb string, body []byte) *http.Response {
	resource, name, sub, namespace := where(q)
	if lookedUp[resource] == "" {
		return nil
	}
	selected := strings.TrimPrefix(q.URL.Query().Get("fieldSelector"), "metadata.name=")
	at := strings.Join([]string{resource, namespace, selected}, "/")
	switch {
	case sub == "token" && f.objects.noTokens:
		return refusal(apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name))
	case sub == "token":
		ask := parsed[authentication.TokenRequest](body)
		f.objects.requests = append(f.objects.requests, *ask)
		ask.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"}
		ask.Status = authentication.TokenRequestStatus{
			Token:               fmt.Sprintf("%s-%d", name, len(f.objects.requests)),
			ExpirationTimestamp: metav1.NewTime(time.Now().Add(-f.objects.ahead).Add(time.Duration(*ask.Spec.ExpirationSeconds) * time.Second)),
		}
		return answer(201, ask)
	case verb == "WATCH":
		return f.watch(q, at)
	case verb == "POST" || verb == "PUT" || verb == "PATCH":
		return f.write1(resource, namespace, name, verb, body)
	case name != "":
		if o := f.objects.have[resource+"/"+namespace+"/"+name]; o != nil {
			return answer(200, o)
		}
		return refusal(apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name))
	}
	version, kind := versionOf(resource), lookedUp[resource]
	items := []object{}
	for _, key := range slices.Sorted(maps.Keys(f.objects.have)) {
		if strings.HasPrefix(key, resource+"/") && (selected == "" || key == at) {
			items = append(items, f.objects.have[key])
		}
	}
	return answer(200, map[string]any{"kind": kind + "List", "apiVersion": version, "metadata": metav1.ListMeta{ResourceVersion: fmt.Sprint(f.version)}, "items": items})
}

func versionOf(resource string) string {
	switch resource {
	case "runtimeclasses":
		return "node.k8s.io/v1"
	case "csidrivers", "csinodes", "volumeattachments":
		return "storage.k8s.io/v1"
	}
	return "v1"
}

// write1 takes a CSINode, or a patch of a claim's status.
func (f *fakeAPI) write1(resource, namespace, name, verb string, body []byte) *http.Response {
	what := schema.GroupResource{Resource: resource}
	if resource == "csinodes" {
		is := parsed[storage.CSINode](body)
		was := f.objects.have["csinodes//"+is.Name]
		switch {
		case verb == "POST" && was != nil:
			return refusal(apierrors.NewAlreadyExists(what, is.Name))
		case verb == "PUT" && was == nil:
			return refusal(apierrors.NewNotFound(what, is.Name))
		case verb == "PUT" && was.GetResourceVersion() != is.ResourceVersion:
			return refusal(apierrors.NewConflict(what, is.Name, fmt.Errorf("changed")))
		}
		f.give(resource, is, "MODIFIED")
		return answer(200, f.objects.have["csinodes//"+is.Name])
	}
	at := resource + "/" + namespace + "/" + name
	before, _ := json.Marshal(f.objects.have[at])
	after, err := strategicpatch.StrategicMergePatch(before, body, v1.PersistentVolumeClaim{})
	if err != nil {
		return refusal(apierrors.NewBadRequest(err.Error()))
	}
	is := parsed[v1.PersistentVolumeClaim](after)
	if is.ResourceVersion != f.objects.have[at].GetResourceVersion() {
		return refusal(apierrors.NewConflict(what, name, fmt.Errorf("changed")))
	}
	f.give(resource, is, "MODIFIED")
	return answer(200, f.objects.have[at])
}

// give has an object be there, or not, and tells the watches of it; the caller holds
// mu.
func (f *fakeAPI) give(resource string, o object, event string) {
	f.version++
	o = o.DeepCopyObject().(object)
	o.SetResourceVersion(fmt.Sprint(f.version))
	o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(versionOf(resource), lookedUp[resource]))
	if f.objects.have == nil {
		f.objects.have = map[string]object{}
	}
	if f.changed == nil {
		f.changed = map[string]int{}
	}
	at := strings.Join([]string{resource, o.GetNamespace(), o.GetName()}, "/")
	if f.objects.have[at] = o; event == "DELETED" {
		delete(f.objects.have, at)
	}
	raw, _ := json.Marshal(o)
	text, _ := json.Marshal(metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: raw}})
	for _, at := range []string{at, resource + "//"} {
		f.changed[at] = f.version
		for _, w := range f.watches {
			if w.resource == at {
				go w.Write(text)
			}
		}
	}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func config(name, value string) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: named(name), Data: map[string]string{"a": value}}
}
