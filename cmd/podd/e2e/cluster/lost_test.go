//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// containers are the ids of those that run on the node, by the names of their pods,
// which end in the node's or begin with it.
func (a *agent) containers() map[string]string {
	a.t.Helper()
	conn, err := grpc.NewClient(runtimeStack.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	running := &cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}}
	reply, err := cri.NewRuntimeServiceClient(conn).ListContainers(a.t.Context(), &cri.ListContainersRequest{Filter: running})
	if err != nil {
		a.t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range reply.GetContainers() {
		if name := c.GetLabels()[runtime.LabelPodName]; strings.HasPrefix(name, a.node+"-") || strings.HasSuffix(name, "-"+a.node) {
			all[name] = c.GetId()
		}
	}
	return all
}

// An API server that comes back without its memory ends nothing, whether podd is
// started meanwhile or not, which says so; what is bound then runs, and what the
// cluster does not know ends when it is to.
func TestLost(t *testing.T) {
	a := newAgent(t, "n15").start()
	a.ready()
	kept := bind(t, a.node, "n15-kept", nil, sleeper("main")).Name
	a.told(kept, "is ready", isReady)
	a.pod("static")
	a.runs("static")
	before := a.containers()
	if len(before) != 2 {
		t.Fatalf("containers %v", before)
	}
	plane.command(t, "lose")
	const strange = "pods that it does not list keep running"
	a.tells(strange, true)
	untouched := func(when string) {
		t.Helper()
		for name, id := range before {
			if now := a.containers()[name]; now != id {
				t.Errorf("%s: container %q of %s runs, not %q", when, now, name, id)
			}
		}
	}
	untouched("after the loss")
	if _, err := plane.pod("default", kept); !errors.Is(err, errNone) {
		t.Errorf("the cluster knows it: %v", err)
	}
	a.kill()
	a.start()
	a.ready()
	a.tells(strange, true)
	a.runs("static")
	untouched("with a podd that came after")
	made := bind(t, a.node, "n15-made", nil, sleeper("main"))
	a.told(made.Name, "is ready", isReady)
	untouched("beside another")

	a.kill()
	if err := os.Remove(filepath.Join(a.dir, "root", "cluster.json")); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.eventually("it is ended", func() error {
		if id := a.containers()[kept]; id != "" {
			return fmt.Errorf("container %s runs", id)
		}
		return nil
	})
	a.none(kept)
	a.tells(strange, false)
	a.told(made.Name, "is ready", isReady)
}
