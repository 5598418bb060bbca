//go:build e2e

package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/server"
)

// patience is the maximum time that a test waits for an event in an emulated machine.
const patience = 10 * time.Minute

// eventually polls until check returns nil. After patience the test fails with the last error and
// the end of the journal.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			journal, _ := system("journalctl --no-pager --boot --unit=podd --unit=containerd --lines=80")
			t.Fatalf("waited %v until %s: %v\n%s", patience, what, err, journal)
		}
	}
}

// view returns the pods that podd shows, by name without the node name.
func view() (map[string]*server.PodView, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join("/run/podd", server.SocketName))
		},
	}}
	reply, err := client.Get("http://podd/v1/state")
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var v server.View
	if err := json.NewDecoder(reply.Body).Decode(&v); err != nil {
		return nil, err
	}
	pods := map[string]*server.PodView{}
	for i := range v.Pods {
		pods[trimNode(v.Pods[i].Pod.Name)] = v.Pods[i]
	}
	return pods, nil
}

// untilReady waits until podd shows exactly these pods and all of them are ready, and returns
// the pods.
func untilReady(t testing.TB, names ...string) map[string]*server.PodView {
	t.Helper()
	var pods map[string]*server.PodView
	eventually(t, fmt.Sprintf("%v are ready", names), func() (err error) {
		if pods, err = view(); err != nil {
			return err
		}
		if err := checkReady(pods, names...); err != nil {
			return err
		}
		if len(pods) != len(names) {
			return fmt.Errorf("got %d pods, want %d", len(pods), len(names))
		}
		return nil
	})
	return pods
}

// checkReady returns an error unless pods contains all these pods and they are ready.
func checkReady(pods map[string]*server.PodView, names ...string) error {
	for _, name := range names {
		if p := pods[name]; p == nil || !p.Ready {
			return fmt.Errorf("pod %s: got %+v, want a ready pod", name, p)
		}
	}
	return nil
}

// An inventory contains the sandboxes and containers of the runtime. The name of a sandbox is
// "POD", and the name of a container is "POD/CONTAINER".
type inventory struct {
	running map[string]string // IDs by name
	exited  []string
}

// getInventory lists the sandboxes and containers of the runtime. It returns an error if two of
// them with the same name are running.
func getInventory(ctx context.Context) (inventory, error) {
	s := inventory{running: map[string]string{}}
	conn, err := grpc.NewClient("unix:///run/containerd/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return s, err
	}
	defer conn.Close()
	client := cri.NewRuntimeServiceClient(conn)
	sandboxes, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return s, err
	}
	for _, b := range sandboxes.GetItems() {
		if err := s.add(trimNode(b.GetMetadata().GetName()), b.GetId(), b.GetState() == cri.PodSandboxState_SANDBOX_READY); err != nil {
			return s, err
		}
	}
	containers, err := client.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return s, err
	}
	for _, c := range containers.GetContainers() {
		name := trimNode(c.GetLabels()[runtime.LabelPodName]) + "/" + c.GetMetadata().GetName()
		if err := s.add(name, c.GetId(), c.GetState() == cri.ContainerState_CONTAINER_RUNNING); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *inventory) add(name, id string, running bool) error {
	switch {
	case !running:
		s.exited = append(s.exited, name)
	case s.running[name] != "":
		return fmt.Errorf("sandboxes and containers of the runtime: got two running ones named %s, want one", name)
	default:
		s.running[name] = id
	}
	return nil
}
