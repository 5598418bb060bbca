package cli

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// TestPs_EarlierVersion checks the columns READY, STATUS and FROM of an edited pod while containers of
// its earlier version continue to run or are being stopped. podd ps must show the status of the
// earlier version until no container of it is left.
func TestPs_EarlierVersion(t *testing.T) {
	desired := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}, {Name: "more"}}},
		Status: v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		}},
	}
	for name, test := range map[string]struct {
		running, stopping     int // containers of the earlier version
		ready, status, source string
	}{
		"earlier version running":  {1, 0, "1/2", "Running", "web.yaml (edit waits)"},
		"earlier version stopping": {0, 1, "1/2", "Terminating", "web.yaml"},
		"no earlier version":       {0, 0, "0/2", "ContainerCreating", "web.yaml"},
	} {
		p := &server.PodView{Pod: desired, Path: "/etc/podd/manifests/web.yaml", IsCurrent: true, OutdatedRunningContainers: test.running, OutdatedStoppingContainers: test.stopping}
		c := podCells(p, poddtest.At)
		from := (&viewPrinter{PsCmd: &PsCmd{}}).fromCell(&server.View{}, p, poddtest.At)
		if c.Ready != test.ready || c.Status != test.status || from != test.source {
			t.Errorf("%s: got READY %s, STATUS %s, FROM %q; want READY %s, STATUS %s, FROM %q", name, c.Ready, c.Status, from, test.ready, test.status, test.source)
		}
	}
}
