//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// podsSocket returns the path of the socket of the pods API.
func (d *daemon) podsSocket() string { return filepath.Join(d.root(), "pods-api", "pods-api.sock") }

// TestPodsAPI checks that clients of the kubelet's pods API can read a running pod, and receive events
// when it terminates and is deleted. Without the feature gate PodsAPI, podd must not create the socket.
func TestPodsAPI(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("web"))))
	web := d.untilApplied("web").Pod
	conn, err := grpc.NewClient("unix://"+d.podsSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := v1alpha1.NewPodsClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	list, err := client.ListPods(ctx, &v1alpha1.ListPodsRequest{})
	if err != nil || len(list.GetPods()) != 1 {
		t.Fatalf("ListPods: got %v and error %v, want one pod", list, err)
	}
	one, err := client.GetPod(ctx, &v1alpha1.GetPodRequest{PodUID: string(web.UID)})
	if err != nil {
		t.Fatal(err)
	}
	for method, data := range map[string][]byte{"ListPods": list.GetPods()[0], "GetPod": one.GetPod()} {
		var p v1.Pod
		if err := p.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if p.UID != web.UID || p.Spec.Containers[0].Name != "main" || p.Status.Phase != v1.PodRunning || p.Status.PodIP == "" {
			t.Errorf("%s: got UID %s and status %+v, want UID %s and a running pod with an IP address", method, p.UID, p.Status, web.UID)
		}
	}

	stream, err := client.WatchPods(ctx, &v1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func() (v1alpha1.EventType, *v1.Pod) {
		t.Helper()
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		p := &v1.Pod{}
		if err := p.Unmarshal(e.GetPod()); err != nil {
			t.Fatal(err)
		}
		return e.GetType(), p
	}
	if kind, p := next(); kind != v1alpha1.EventType_ADDED || p.UID != web.UID {
		t.Errorf("first event: got %s of UID %s, want ADDED of %s", kind, p.UID, web.UID)
	}
	if kind, _ := next(); kind != v1alpha1.EventType_INITIAL_SYNC_COMPLETE {
		t.Errorf("second event: got %s, want INITIAL_SYNC_COMPLETE", kind)
	}
	d.remove("web")
	isTerminating := false
	for {
		kind, p := next()
		isTerminating = isTerminating || kind == v1alpha1.EventType_MODIFIED && p.DeletionTimestamp != nil
		if kind != v1alpha1.EventType_DELETED {
			continue
		}
		if p.UID != web.UID || !isTerminating {
			t.Errorf("event DELETED: got UID %s, earlier event with a terminating pod: %t; want UID %s, earlier event with a terminating pod: true", p.UID, isTerminating, web.UID)
		}
		break
	}

	d.kill()
	d.args = append(d.args, "--feature-gates=PodsAPI=false")
	if err := os.RemoveAll(filepath.Dir(d.podsSocket())); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	if _, err := os.Stat(d.podsSocket()); !os.IsNotExist(err) {
		t.Errorf("finding the socket without the feature gate: got error %v, want an error because the socket does not exist", err)
	}
}
