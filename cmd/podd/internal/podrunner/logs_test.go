package podrunner

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/rotate"
	"podd/reconcile/state"
	"podd/runtime"
)

// TestListLogs checks that the log of the newest attempt of each container is listed. Containers in the
// sandboxes of other agents must be omitted. Containers for which the function in the second argument
// returns false must also be omitted.
func TestListLogs(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "web"}
	reports := []*state.Report{{Key: key, Observed: []runtime.Incarnation{
		{Sandbox: runtime.Sandbox{UID: "u"}, Containers: []runtime.Container{
			{ID: "0", Name: "a", State: runtime.Exited}, {ID: "1", Name: "a", Attempt: 1, State: runtime.Running},
			{ID: "2", Name: "b", State: runtime.Exited}, {ID: "3", Name: "copied", State: runtime.Running},
		}},
		{Sandbox: runtime.Sandbox{UID: "foreign", Foreign: true}, Containers: []runtime.Container{{ID: "5", Name: "a", State: runtime.Running}}},
	}}}
	got := listLogs(reports, func(l ContainerLog) bool { return l.Pod == key && l.Container != "copied" })
	slices.SortFunc(got, func(a, b rotate.Log) int { return cmp.Compare(a.Dir, b.Dir) })
	want := []rotate.Log{{Dir: "default_web_u/a", Attempt: 1, ID: "1"}, {Dir: "default_web_u/b"}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
}
