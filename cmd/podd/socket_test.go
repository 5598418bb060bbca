package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/render"
	"podd/server"
)

// TestFollowEndsWithItsContainer: also when that was restarted before the reader
// came to the end of its log.
func TestFollowEndsWithItsContainer(t *testing.T) {
	state := server.NewLatest(viewOf(up(podAt("one.yaml", 1, "one", "app"))))
	l := logReader{state: state, node: render.Node{LogsDir: t.TempDir()}}
	o, err := l.options(server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "app", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	again := up(podAt("one.yaml", 1, "one", "app"))
	again.Pod.Status.ContainerStatuses[0].ContainerID = "containerd://app2"
	next := viewOf(again)
	next.Revision++
	state.Publish(next)
	if over, _ := o.Ended(); !over {
		t.Error("it waits for the end of the next container")
	}
}
