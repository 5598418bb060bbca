// Package kubetest provides the node that the tests of the Kubernetes API serve.
package kubetest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/auth"
	"podd/server/kubelet"
)

// Node is a node with two pods and some other objects.
type Node struct {
	*server.LatestView
	LastCall string // description of the last call of the runtime or of Logs
	LogText  string // served as the log of every container
}

// Pod returns a running pod with the UID "u" + uid.
func Pod(namespace, name, uid string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("u" + uid), Labels: map[string]string{"app": strings.TrimSuffix(name, "-n1")}},
		Spec:       v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "main", Image: "web:1", Env: []v1.EnvVar{{Name: "A", Value: "b"}}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.2", ContainerStatuses: []v1.ContainerStatus{
			{Name: "main", ContainerID: "containerd://c-" + name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		}},
	}
}

// NewNode returns the Node.
func NewNode() *Node {
	web, two := Pod("default", "web-n1", "1"), Pod("shop", "two-n1", "2")
	two.Spec.Containers = append(two.Spec.Containers, v1.Container{Name: "side", Image: "s:1"})
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}, Data: map[string][]byte{"k": []byte("v")}, Type: v1.SecretTypeOpaque}
	return &Node{LatestView: server.NewLatestView(&server.View{
		Revision: 1000, Node: "n1", Version: "v9", Sources: []string{"/etc/podd/manifests"},
		Pods: []*server.PodView{
			{Pod: web, Path: "/etc/podd/manifests/web.yaml", Line: 3, SandboxID: "s-web"},
			{Pod: two, Path: "/etc/podd/manifests/two.yaml", Line: 1},
		},
		NodeObject: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n"}},
		Objects: func() *server.Objects {
			return &server.Objects{Secrets: []*server.ObjectView{{Object: secret, Path: "/etc/podd/manifests/two.yaml", Line: 20}}}
		},
	})}
}

// UpdateView calls edit to change a copy of the current View, and publishes the copy.
func (n *Node) UpdateView(edit func(*server.View)) {
	nextView := *n.View()
	nextView.Revision++
	edit(&nextView)
	n.Publish(&nextView)
}

// PutPod adds or replaces a pod.
func (n *Node) PutPod(p *v1.Pod) {
	n.UpdateView(func(v *server.View) {
		var pods []*server.PodView
		isAdded := false
		for _, old := range v.Pods {
			switch order := (server.Key{Namespace: p.Namespace, Name: p.Name}).Compare(old.Key()); {
			case order <= 0 && !isAdded:
				pods, isAdded = append(pods, &server.PodView{Pod: p}), true
				if order == 0 {
					continue
				}
			}
			pods = append(pods, old)
		}
		if !isAdded {
			pods = append(pods, &server.PodView{Pod: p})
		}
		v.Pods = pods
	})
}

// RemovePod removes a pod.
func (n *Node) RemovePod(name string) {
	n.UpdateView(func(v *server.View) {
		var pods []*server.PodView
		for _, p := range v.Pods {
			if p.Pod.Name != name {
				pods = append(pods, p)
			}
		}
		v.Pods = pods
	})
}

// Exec implements kubelet.Runtime.
func (n *Node) Exec(_ context.Context, id string, command []string, s kubelet.Streams) (string, error) {
	b, _ := json.Marshal(s)
	n.LastCall = "exec " + id + " " + strings.Join(command, "|") + " " + string(b)
	return "", nil
}

// Attach implements kubelet.Runtime.
func (n *Node) Attach(_ context.Context, id string, s kubelet.Streams) (string, error) {
	n.LastCall = "attach " + id
	return "", nil
}

// PortForward implements kubelet.Runtime.
func (n *Node) PortForward(_ context.Context, sandbox string, ports []int32) (string, error) {
	n.LastCall = "forward " + sandbox
	return "", nil
}

// Run implements kubelet.Runtime.
func (n *Node) Run(context.Context, string, []string) ([]byte, int32, error) {
	n.LastCall = "run"
	return nil, 0, nil
}

// Checkpoint implements kubelet.Runtime.
func (n *Node) Checkpoint(context.Context, string, string, time.Duration) error {
	n.LastCall = "checkpoint"
	return nil
}

// Usage returns the same usage each time.
func (n *Node) Usage(context.Context) (*server.Usage, error) {
	amount := server.ResourceUsage{NanoCores: new(uint64(10e6)), WorkingSetBytes: 5 << 20}
	return &server.Usage{At: time.Unix(7, 0), Node: amount, Pods: map[server.Key]server.PodUsage{
		{Namespace: "default", Name: "web-n1"}: {ResourceUsage: amount, Containers: map[string]server.ResourceUsage{"main": amount, "starting": {}}},
	}}, nil
}

// Logs implements server.LogReader.
func (n *Node) Logs(_ context.Context, req server.LogRequest, w io.Writer) error {
	b, _ := json.Marshal(req)
	n.LastCall = string(b)
	_, err := io.WriteString(w, n.LogText)
	return err
}

// SendRequest sends a request of a user whose only permission is to read the discovery documents.
func SendRequest(t testing.TB, h http.Handler, method, target, accept, body string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, strings.NewReader(body))
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	h.ServeHTTP(w, r.WithContext(auth.WithUser(r.Context(), auth.User{Name: "bob", Groups: []string{"dev", "system:authenticated"}})))
	return w
}
