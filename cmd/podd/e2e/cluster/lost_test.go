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

// containers returns the IDs of the node's running containers by the names of their pods. It finds
// the pods by their names, which begin with "NODE-" or end with "-NODE", because the nodes of all
// tests share one runtime.
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

// TestAPIServerDataLoss checks that podd stops no pod and reports the problem when the API
// server has lost its data, also after a restart of podd. Pods that are bound afterwards must
// run. podd recognizes the loss by its record of the cluster, cluster.json. When this file is
// removed and podd restarts, podd must stop the pod that does not exist in the cluster.
func TestAPIServerDataLoss(t *testing.T) {
	a := newAgent(t, "n15").start()
	a.untilReady()
	kept := createBoundPod(t, a.node, "n15-kept", nil, sleepingContainer("main")).Name
	a.untilStatus(kept, "is ready", isReady)
	a.pod("static")
	a.untilRunning("static")
	before := a.containers()
	if len(before) != 2 {
		t.Fatalf("got running containers %v, want 2", before)
	}
	plane.command(t, "lose")
	const notListed = "pods that the API server does not list keep running"
	a.untilPs(notListed, true)
	checkContainers := func(when string) {
		t.Helper()
		for name, id := range before {
			if now := a.containers()[name]; now != id {
				t.Errorf("%s: pod %s: got running container %q, want %q", when, name, now, id)
			}
		}
	}
	checkContainers("after the data loss")
	if _, err := plane.pod("default", kept); !errors.Is(err, errNotFound) {
		t.Errorf("pod %s at the API server: got error %v, want not found", kept, err)
	}
	a.kill()
	a.start()
	a.untilReady()
	a.untilPs(notListed, true)
	a.untilRunning("static")
	checkContainers("after a restart of podd")
	made := createBoundPod(t, a.node, "n15-made", nil, sleepingContainer("main"))
	a.untilStatus(made.Name, "is ready", isReady)
	checkContainers("after another pod was bound")

	a.kill()
	if err := os.Remove(filepath.Join(a.dir, "root", "cluster.json")); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.eventually("the pod that the API server does not list is stopped", func() error {
		if id := a.containers()[kept]; id != "" {
			return fmt.Errorf("got the running container %s, want none", id)
		}
		return nil
	})
	a.untilRemoved(kept)
	a.untilPs(notListed, false)
	a.untilStatus(made.Name, "is ready", isReady)
}
