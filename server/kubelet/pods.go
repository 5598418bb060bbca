package kubelet

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

func newList(n int) *v1.PodList {
	return &v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: make([]v1.Pod, 0, n)}
}

func (a *API) podList(w http.ResponseWriter, _ *http.Request) { a.pods.Reply(w, a.State.View()) }

// runningPods are, as the kubelet has them, only names: of the pods of which a
// container runs, and of those containers.
func (a *API) runningPods(w http.ResponseWriter, _ *http.Request) {
	v := a.State.View()
	list := newList(len(v.Pods))
	for _, p := range v.Pods {
		var running []v1.Container
		for c := range server.Statuses(p.Pod) {
			if c.State.Running != nil {
				running = append(running, v1.Container{Name: c.Name, Image: c.Image})
			}
		}
		if len(running) > 0 {
			list.Items = append(list.Items, v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: p.Pod.Name, Namespace: p.Pod.Namespace, UID: p.Pod.UID},
				Spec:       v1.PodSpec{Containers: running},
			})
		}
	}
	server.Reply(w, http.StatusOK, list)
}

// podOf is the pod that a path names; nil when it has answered that there is
// none.
func (a *API) podOf(w http.ResponseWriter, r *http.Request) *server.PodView {
	key := server.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	v := a.State.View()
	p := v.Pod(key)
	if p == nil || r.PathValue("uid") != "" && r.PathValue("uid") != string(p.Pod.UID) {
		http.Error(w, fmt.Sprintf("pod %q does not exist", key.Name)+fullName(v, key), http.StatusNotFound)
		return nil
	}
	return p
}

// fullName asks who named a pod as in its manifest whether they meant what it is
// called on this node.
func fullName(v *server.View, key server.Key) string {
	key.Name += "-" + v.Node
	if v.Pod(key) == nil {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", key.Name)
}

// containerOf is the id of the running container that a path names; "" when it
// has answered that there is none.
func (a *API) containerOf(w http.ResponseWriter, r *http.Request) string {
	p := a.podOf(w, r)
	if p == nil {
		return ""
	}
	id, err := containerID(p, r.PathValue("container"))
	if err != nil {
		fail(w, err)
	}
	return id
}

// containerID is the id of a container that runs.
func containerID(p *server.PodView, name string) (string, error) {
	for c := range server.Statuses(p.Pod) {
		if _, id, ok := strings.Cut(c.ContainerID, "://"); c.Name == name && c.State.Running != nil && ok {
			return id, nil
		}
	}
	if !has(p.Pod, name) {
		return "", noContainer(p, name)
	}
	return "", server.NotFound(fmt.Sprintf("container %q of pod %q does not run", name, p.Pod.Name))
}

func noContainer(p *server.PodView, name string) error {
	return server.NotFound(fmt.Sprintf("container %q not found in pod %q", name, p.Pod.Name))
}

func has(p *v1.Pod, container string) bool {
	spec := &p.Spec
	return slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool { return c.Name == container }) ||
		slices.ContainsFunc(spec.Containers, func(c v1.Container) bool { return c.Name == container }) ||
		slices.ContainsFunc(spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == container })
}
