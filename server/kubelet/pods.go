package kubelet

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

func newPodList(n int) *v1.PodList {
	return &v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: make([]v1.Pod, 0, n)}
}

func (a *API) podList(w http.ResponseWriter, _ *http.Request) { a.pods.Reply(w, a.State.View()) }

// runningPods responds with the pods that have a running container. As in the kubelet, the pods
// contain only their names and the running containers.
func (a *API) runningPods(w http.ResponseWriter, _ *http.Request) {
	v := a.State.View()
	list := newPodList(len(v.Pods))
	for _, p := range v.Pods {
		var runningContainers []v1.Container
		for c := range server.ContainerStatuses(p.Pod) {
			if c.State.Running != nil {
				runningContainers = append(runningContainers, v1.Container{Name: c.Name, Image: c.Image})
			}
		}
		if len(runningContainers) > 0 {
			list.Items = append(list.Items, v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: p.Pod.Name, Namespace: p.Pod.Namespace, UID: p.Pod.UID},
				Spec:       v1.PodSpec{Containers: runningContainers},
			})
		}
	}
	server.Reply(w, http.StatusOK, list)
}

// findPod returns the pod in the request's path. If the pod does not exist, findPod
// responds with 404 and returns nil.
func (a *API) findPod(w http.ResponseWriter, r *http.Request) *server.PodView {
	key := server.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	v := a.State.View()
	p := v.Pod(key)
	if p == nil || !a.hasUID(p.Pod, types.UID(r.PathValue("uid"))) {
		http.Error(w, fmt.Sprintf("pod %q does not exist", key.Name)+suggestFullName(v, key), http.StatusNotFound)
		return nil
	}
	return p
}

// hasUID reports whether uid is the UID of the pod or of its mirror pod. It returns true if uid is "",
// because the UID in a path is optional.
func (a *API) hasUID(p *v1.Pod, uid types.UID) bool {
	if uid == "" || uid == p.UID {
		return true
	}
	return a.MirrorUID != nil && uid == a.MirrorUID(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
}

// suggestFullName returns a hint for clients that use the name in a pod's manifest. This name does
// not end with the node's name. suggestFullName returns "" if no pod with that name and the suffix
// exists.
func suggestFullName(v *server.View, key server.Key) string {
	key.Name += "-" + v.Node
	if v.Pod(key) == nil {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", key.Name)
}

// findContainer returns the id of the running container in the request's path. If the
// container is not running, findContainer responds with 404 and returns "".
func (a *API) findContainer(w http.ResponseWriter, r *http.Request) string {
	p := a.findPod(w, r)
	if p == nil {
		return ""
	}
	id, err := containerID(p, r.PathValue("container"))
	if err != nil {
		replyError(w, err)
	}
	return id
}

// containerID returns the id of a running container. It returns an error if the pod has no
// running container with that name.
func containerID(p *server.PodView, name string) (string, error) {
	for c := range server.ContainerStatuses(p.Pod) {
		if _, id, ok := strings.Cut(c.ContainerID, "://"); c.Name == name && c.State.Running != nil && ok {
			return id, nil
		}
	}
	if !hasContainer(p.Pod, name) {
		return "", newContainerNotFoundError(p, name)
	}
	return "", server.NewNotFoundError(fmt.Sprintf("container %q of pod %q is not running", name, p.Pod.Name))
}

func newContainerNotFoundError(p *server.PodView, name string) error {
	return server.NewNotFoundError(fmt.Sprintf("container %q not found in pod %q", name, p.Pod.Name))
}

func hasContainer(p *v1.Pod, container string) bool {
	spec := &p.Spec
	return slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool { return c.Name == container }) ||
		slices.ContainsFunc(spec.Containers, func(c v1.Container) bool { return c.Name == container }) ||
		slices.ContainsFunc(spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == container })
}
