package kube

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kubelet"
)

// errDebuggingDisabled is the kubelet's response if enableDebuggingHandlers is false.
var errDebuggingDisabled = &server.Error{Status: http.StatusMethodNotAllowed, Message: "Debug endpoints are disabled."}

// serveLog serves the log of a container with the parameters of v1.PodLogOptions.
func (a *API) serveLog(w http.ResponseWriter, r *http.Request, i request.Info) {
	p, err := a.findPod(i)
	var req server.LogRequest
	if err == nil {
		req, err = kubelet.ParseLogRequest(r.URL.Query())
	}
	if err == nil {
		req.Container, err = requestedContainer(p.Pod, r)
	}
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	req.Pod = types.NamespacedName(p.Key())
	kubelet.ServeLog(w, r, a.Logs, req, server.ReplyStatus)
}

// connect opens a stream to a pod.
func (a *API) connect(w http.ResponseWriter, r *http.Request, i request.Info) {
	p, err := a.findPod(i)
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	if i.Subresource == "portforward" {
		kubelet.PortForward(w, r, server.ReplyStatus, a.Runtime, p)
		return
	}
	name, err := requestedContainer(p.Pod, r)
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	isEnabled := func(stream string) bool { return request.BoolParameter(r.URL.Query(), stream) }
	s := kubelet.Streams{Stdin: isEnabled("stdin"), Stdout: isEnabled("stdout"), Stderr: isEnabled("stderr"), TTY: isEnabled("tty")}
	if i.Subresource == "exec" {
		kubelet.Exec(w, r, server.ReplyStatus, a.Runtime, p, name, s)
	} else {
		kubelet.Attach(w, r, server.ReplyStatus, a.Runtime, p, name, s)
	}
}

// findPod returns the pod of a request, or the API's error if it does not exist.
func (a *API) findPod(i request.Info) (*server.PodView, error) {
	key := server.Key{Namespace: i.Namespace, Name: i.Name}
	v := a.State.View()
	p := v.Pod(key)
	if p == nil {
		return nil, a.findResource(i).NotFound(v, key)
	}
	return p, nil
}

// requestedContainer returns the name of the container in the query or, if the query has
// none, the name of the pod's only container. It returns an error if the pod has no such
// container.
func requestedContainer(p *v1.Pod, r *http.Request) (string, error) {
	name := r.URL.Query().Get("container")
	names := containerNames(p)
	switch {
	case name == "" && len(p.Spec.Containers) == 1:
		return p.Spec.Containers[0].Name, nil
	case name == "":
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", p.Name, strings.Join(names, " ")))
	case !slices.Contains(names, name):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %.80s is not valid for pod %s, choose one of: [%s]", name, p.Name, strings.Join(names, " ")))
	}
	return name, nil
}

// containerNames returns the names of all containers of a pod.
func containerNames(p *v1.Pod) (names []string) {
	for _, c := range p.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}
