package write

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// newUnsupportedError returns the error for a request that is not supported. The error
// names the file of the object, which users can edit instead.
func (h *Handler) newUnsupportedError(res *resource.Definition, i request.Info) error {
	key := res.Key(i.Namespace, i.Name)
	if isAllNamespaces(res, i) && slices.Contains(res.Verbs, i.Verb) && (i.Verb == "create" || i.Verb == "deletecollection") {
		return newMethodNotAllowedError(res, i, fmt.Sprintf("%s of %s is supported for one namespace only; specify the namespace in the path", i.Verb, res.Name))
	}
	message := fmt.Sprintf("%s is not supported for %s", verbName(i), res.Name)
	switch i.Verb {
	case "create":
		message = fmt.Sprintf("creating %s through this API is not enabled; write a manifest%s%s", res.Name, h.sourceHint(), h.flagHint())
	case "update", "patch", "delete", "deletecollection":
		location, exists := h.location(res, key)
		switch {
		case i.Name != "" && !exists:
			return res.NotFound(h.state.View(), key)
		case location != "" && i.Verb == "delete":
			message = fmt.Sprintf("%s %q is defined in %s; remove it from that file to delete it", res.Singular, i.Name, location)
		case location != "":
			message = fmt.Sprintf("%s %q is defined in %s; edit that file to change it", res.Singular, i.Name, location)
		case i.Name != "":
			message = fmt.Sprintf("%s %q is managed by podd and cannot be changed through this API", res.Singular, i.Name)
		default:
			message = fmt.Sprintf("changing %s through this API is not enabled; edit their manifests%s%s", res.Name, h.sourceHint(), h.flagHint())
		}
	}
	return newMethodNotAllowedError(res, i, message)
}

// newMethodNotAllowedError returns the API's error MethodNotAllowed with a message.
func newMethodNotAllowedError(res *resource.Definition, i request.Info, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed, Message: message,
		Details: &metav1.StatusDetails{Group: res.Group, Kind: res.Name, Name: i.Name},
	}}
}

// verbName returns the verb of a request for an error message.
func verbName(i request.Info) string {
	if i.Verb == "" {
		return "this method"
	}
	return i.Verb
}

// flagHint returns the part of an error that recommends the flag --api-manifest-dir, or ""
// if the flag has no effect.
func (h *Handler) flagHint() string {
	if h.manifests != nil || h.inCluster {
		return ""
	}
	return ", or start podd with --api-manifest-dir DIR, a directory for objects of this API"
}

// sourceHint returns the part of an error that contains the path of a manifest directory, or "" if
// there is none.
func (h *Handler) sourceHint() string {
	v := h.state.View()
	if len(v.Sources) == 0 {
		return ""
	}
	return " in " + v.Sources[0]
}

// location returns the position of an object as file:line, or "" if the object is in no
// file. exists reports whether the object exists.
func (h *Handler) location(res *resource.Definition, key server.Key) (location string, exists bool) {
	path, line, exists := h.origin(res, key)
	return formatPosition(path, line), exists
}

// origin returns the file and line of an object. exists reports whether the object exists.
func (h *Handler) origin(res *resource.Definition, key server.Key) (path string, line int, exists bool) {
	v := h.state.View()
	if res.Name == "pods" {
		p := v.Pod(key)
		if p == nil {
			return "", 0, false
		}
		return p.Path, p.Line, true
	}
	if res.SelectObjects != nil && v.Objects != nil {
		for _, o := range res.SelectObjects(v.Objects()) {
			if o.Object.GetNamespace() == key.Namespace && o.Object.GetName() == key.Name {
				return o.Path, o.Line, true
			}
		}
	}
	if res.Items == nil {
		return "", 0, true
	}
	return "", 0, slices.ContainsFunc(res.Items(v), func(i resource.Item) bool { return i.Key == key })
}

// formatPosition returns file:line, or the path alone if line is 0.
func formatPosition(path string, line int) string {
	if path == "" || line <= 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}
