//go:build vm

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

// patience is how long a test waits for what must come, on an emulated machine.
const patience = 10 * time.Minute

// eventually asks until what is true, and fails with the last reason why not.
func eventually(t testing.TB, what string, is func() error) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			journal, _ := system("journalctl --no-pager --boot --unit=podd --unit=containerd --lines=80")
			t.Fatalf("waiting until %s: %v\n%s", what, err, journal)
		}
	}
}

// view is what podd shows now, by a pod's name without that of the node.
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
		pods[bare(v.Pods[i].Pod.Name)] = v.Pods[i]
	}
	return pods, nil
}

// untilReady waits until podd shows these pods and no other, all ready, and
// returns them.
func untilReady(t testing.TB, names ...string) map[string]*server.PodView {
	t.Helper()
	var pods map[string]*server.PodView
	eventually(t, fmt.Sprintf("%v are ready", names), func() (err error) {
		if pods, err = view(); err != nil {
			return err
		}
		for _, name := range names {
			if p := pods[name]; p == nil || !p.Ready {
				return fmt.Errorf("%s is not: %+v", name, p)
			}
		}
		if len(pods) != len(names) {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	return pods
}

// seen is what the runtime has, each as "pod/container", sandboxes as "pod".
type seen struct {
	runs map[string]string // the ID of the one that runs
	dead []string
}

// look asks the runtime. Two that run under one name are an error.
func look(ctx context.Context) (seen, error) {
	s := seen{runs: map[string]string{}}
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
		if err := s.add(bare(b.GetMetadata().GetName()), b.GetId(), b.GetState() == cri.PodSandboxState_SANDBOX_READY); err != nil {
			return s, err
		}
	}
	containers, err := client.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return s, err
	}
	for _, c := range containers.GetContainers() {
		name := bare(c.GetLabels()[runtime.LabelPodName]) + "/" + c.GetMetadata().GetName()
		if err := s.add(name, c.GetId(), c.GetState() == cri.ContainerState_CONTAINER_RUNNING); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *seen) add(name, id string, runs bool) error {
	switch {
	case !runs:
		s.dead = append(s.dead, name)
	case s.runs[name] != "":
		return fmt.Errorf("%s runs twice", name)
	default:
		s.runs[name] = id
	}
	return nil
}
