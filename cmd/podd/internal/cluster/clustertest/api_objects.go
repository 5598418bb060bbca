package clustertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"podd/cmd/podd/internal/cluster/apiserver"
)

// objectKinds maps the resources in API.Objects to their kinds.
var objectKinds = map[string]string{
	"configmaps": "ConfigMap", "secrets": "Secret", "services": "Service", "serviceaccounts": "ServiceAccount",
	"persistentvolumeclaims": "PersistentVolumeClaim", "persistentvolumes": "PersistentVolume", "runtimeclasses": "RuntimeClass",
	"csidrivers": "CSIDriver", "csinodes": "CSINode", "volumeattachments": "VolumeAttachment",
	"clustertrustbundles": "ClusterTrustBundle", "podcertificaterequests": "PodCertificateRequest",
}

// parsePath returns the resource, the name, the subresource and the namespace in the path of a
// request. A missing part is "".
func parsePath(q *http.Request) (resource, name, subresource, namespace string) {
	path := strings.Split(strings.TrimPrefix(q.URL.Path, "/"), "/")
	path = path[slices.IndexFunc(path, func(step string) bool { return strings.HasPrefix(step, "v1") })+1:]
	if path[0] == "namespaces" && len(path) > 2 {
		namespace, path = path[1], path[2:]
	}
	path = append(path, "", "")
	return path[0], path[1], path[2], namespace
}

// handleObject returns the response for a resource in objectKinds, or nil for other resources. The
// caller must hold Mu.
func (f *API) handleObject(q *http.Request, verb string, body []byte) *http.Response {
	resource, name, subresource, namespace := parsePath(q)
	if objectKinds[resource] == "" {
		return nil
	}
	selector := q.URL.Query().Get("fieldSelector")
	signer, bySigner := strings.CutPrefix(selector, "spec.signerName=")
	selected := ""
	if !bySigner {
		selected = selector[strings.LastIndex(selector, "=")+1:]
	}
	at := strings.Join([]string{resource, namespace, selected}, "/")
	switch {
	case subresource == "token" && f.RejectsTokens:
		return ErrorResponse(apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name))
	case subresource == "token":
		r := MustDecode[authentication.TokenRequest](body)
		f.TokenRequests = append(f.TokenRequests, *r)
		r.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"}
		r.Status = authentication.TokenRequestStatus{
			Token:               fmt.Sprintf("%s-%d", name, len(f.TokenRequests)),
			ExpirationTimestamp: metav1.NewTime(time.Now().Add(-f.ClockLag).Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)),
		}
		return Response(201, r)
	case verb == "WATCH":
		return f.watch(q, at)
	case verb == "POST" || verb == "PUT" || verb == "PATCH":
		return f.writeObject(resource, namespace, name, verb, body)
	case name != "":
		if o := f.Objects[resource+"/"+namespace+"/"+name]; o != nil {
			return Response(200, o)
		}
		return ErrorResponse(apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name))
	}
	version, kind := versionOf(resource), objectKinds[resource]
	items := []apiserver.Object{}
	for _, key := range slices.Sorted(maps.Keys(f.Objects)) {
		b, isBundle := f.Objects[key].(*certificates.ClusterTrustBundle)
		if strings.HasPrefix(key, resource+"/") && (selected == "" || key == at) && (!isBundle || !bySigner || b.Spec.SignerName == signer) {
			items = append(items, f.Objects[key])
		}
	}
	if strings.Contains(q.URL.Path, "/v1beta1/") {
		version = strings.Replace(version, "/v1", "/v1beta1", 1)
	}
	return Response(200, map[string]any{"kind": kind + "List", "apiVersion": version, "metadata": metav1.ListMeta{ResourceVersion: fmt.Sprint(f.Version)}, "items": items})
}

// versionOf returns the API version of a resource.
func versionOf(resource string) string {
	switch resource {
	case "runtimeclasses":
		return "node.k8s.io/v1"
	case "csidrivers", "csinodes", "volumeattachments":
		return "storage.k8s.io/v1"
	case "clustertrustbundles", "podcertificaterequests":
		return "certificates.k8s.io/v1"
	}
	return "v1"
}

// writeObject creates a PodCertificateRequest, creates or replaces a CSINode, or patches the status
// of a claim. The caller must hold Mu.
func (f *API) writeObject(resource, namespace, name, verb string, body []byte) *http.Response {
	group := schema.GroupResource{Resource: resource}
	if resource == "csinodes" {
		next := MustDecode[storage.CSINode](body)
		old := f.Objects["csinodes//"+next.Name]
		switch {
		case verb == "POST" && old != nil:
			return ErrorResponse(apierrors.NewAlreadyExists(group, next.Name))
		case verb == "PUT" && old == nil:
			return ErrorResponse(apierrors.NewNotFound(group, next.Name))
		case verb == "PUT" && old.GetResourceVersion() != next.ResourceVersion:
			return ErrorResponse(apierrors.NewConflict(group, next.Name, fmt.Errorf("changed")))
		}
		f.PutObject(resource, next, "MODIFIED")
		return Response(200, f.Objects["csinodes//"+next.Name])
	}
	if resource == "podcertificaterequests" {
		made := MustDecode[certificates.PodCertificateRequest](body)
		made.Name = made.GenerateName + fmt.Sprint(f.Version)
		f.PutObject(resource, made, "ADDED")
		return Response(201, f.Objects[resource+"/"+namespace+"/"+made.Name])
	}
	at := resource + "/" + namespace + "/" + name
	before, _ := json.Marshal(f.Objects[at])
	after, err := strategicpatch.StrategicMergePatch(before, body, v1.PersistentVolumeClaim{})
	if err != nil {
		return ErrorResponse(apierrors.NewBadRequest(err.Error()))
	}
	next := MustDecode[v1.PersistentVolumeClaim](after)
	if next.ResourceVersion != f.Objects[at].GetResourceVersion() {
		return ErrorResponse(apierrors.NewConflict(group, name, fmt.Errorf("changed")))
	}
	f.PutObject(resource, next, "MODIFIED")
	return Response(200, f.Objects[at])
}

// PutObject stores an object, or deletes it if event is "DELETED". It then sends the event to the
// watches. The caller must hold Mu.
func (f *API) PutObject(resource string, o apiserver.Object, event string) {
	f.Version++
	o = o.DeepCopyObject().(apiserver.Object)
	o.SetResourceVersion(fmt.Sprint(f.Version))
	o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(versionOf(resource), objectKinds[resource]))
	if f.Objects == nil {
		f.Objects = map[string]apiserver.Object{}
	}
	at := strings.Join([]string{resource, o.GetNamespace(), o.GetName()}, "/")
	if f.Objects[at] = o; event == "DELETED" {
		delete(f.Objects, at)
	}
	f.notify(at, event, o)
	f.notify(resource+"//", event, o)
}

// Meta returns the metadata of an object in the namespace default.
func Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

// NewConfigMap returns the ConfigMap default/conf. data contains keys and values alternately.
func NewConfigMap(uid types.UID, data ...string) *v1.ConfigMap {
	m := &v1.ConfigMap{ObjectMeta: Meta("conf"), Data: map[string]string{}}
	m.UID = uid
	for i := 0; i < len(data); i += 2 {
		m.Data[data[i]] = data[i+1]
	}
	return m
}

// AnnotateNode sets an annotation of the Node, or removes it if value is "". The caller must hold Mu unless
// the code under test has not started yet.
func (f *API) AnnotateNode(key, value string) {
	n := f.Node.DeepCopy()
	if metav1.SetMetaDataAnnotation(&n.ObjectMeta, key, value); value == "" {
		delete(n.Annotations, key)
	}
	f.PutNode(n, "MODIFIED")
}
