package kube

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/request"
)

// errNoPath is the answer to what is no path here.
var errNoPath = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
	Message: "the server could not find the requested resource",
}}

// refusal says why something is not done, and where to do it: in the file that
// an object is written in.
func (a *API) refusal(res *resource, i request.Info) error {
	key := server.Key{Namespace: i.Namespace, Name: i.Name}
	if !res.namespaced {
		key.Namespace = ""
	}
	if unplaced(res, i) && slices.Contains(res.verbs, i.Verb) && (i.Verb == "create" || i.Verb == "deletecollection") {
		return notAllowed(res, i, fmt.Sprintf("%s of %s is served in one namespace at a time: name it in the path", i.Verb, res.name))
	}
	message := fmt.Sprintf("%s is not served for %s by podd", verbOf(i), res.name)
	switch i.Verb {
	case "create":
		message = fmt.Sprintf("podd takes no %s over this API: write a manifest where it reads them%s%s", res.name, a.sources(), a.flag())
	case "update", "patch", "delete", "deletecollection":
		at, exists := a.written(res, key)
		switch {
		case i.Name != "" && !exists:
			return a.notFound(res, key)
		case at != "" && i.Verb == "delete":
			message = fmt.Sprintf("%s %q is written in %s: remove it there and podd ends it", res.singular, i.Name, at)
		case at != "":
			message = fmt.Sprintf("%s %q is written in %s: edit it there and podd follows", res.singular, i.Name, at)
		case i.Name != "":
			message = fmt.Sprintf("%s %q is podd's own account of this machine: nothing over this API changes it", res.singular, i.Name)
		default:
			message = fmt.Sprintf("podd changes no %s over this API: edit their manifests%s%s", res.name, a.sources(), a.flag())
		}
	}
	return notAllowed(res, i, message)
}

func notAllowed(res *resource, i request.Info, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed, Message: message,
		Details: &metav1.StatusDetails{Group: res.group, Kind: res.name, Name: i.Name},
	}}
}

func verbOf(i request.Info) string {
	if i.Verb == "" {
		return "this method"
	}
	return i.Verb
}

// flag is what would have it taken.
func (a *API) flag() string {
	if a.Manifests != nil || a.OfCluster {
		return ""
	}
	return ", or start podd with --api-manifest-dir DIR, a directory for those of this API"
}

// sources tells where manifests are read from.
func (a *API) sources() string {
	v := a.State.View()
	if len(v.Sources) == 0 {
		return ""
	}
	return ", " + v.Sources[0]
}

// written is where an object is, as file:line; "" for one that is in no file.
func (a *API) written(res *resource, key server.Key) (at string, exists bool) {
	path, line, exists := a.at(res, key)
	return place(path, line), exists
}

// at is the file and line of an object.
func (a *API) at(res *resource, key server.Key) (path string, line int, exists bool) {
	v := a.State.View()
	if res.name == "pods" {
		p := v.Pod(key)
		if p == nil {
			return "", 0, false
		}
		return p.Path, p.Line, true
	}
	if res.beside != nil && v.Objects != nil {
		for _, o := range res.beside(v.Objects()) {
			if o.Object.GetNamespace() == key.Namespace && o.Object.GetName() == key.Name {
				return o.Path, o.Line, true
			}
		}
	}
	if res.items == nil {
		return "", 0, true
	}
	return "", 0, slices.ContainsFunc(res.items(v), func(i item) bool { return i.key == key })
}

func place(path string, line int) string {
	if path == "" || line <= 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}
