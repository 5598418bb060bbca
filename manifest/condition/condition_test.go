package condition

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestFind(t *testing.T) {
	all := []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}, {Type: v1.PodReady, Status: v1.ConditionFalse}}
	if got := Find(all, v1.PodReady); got != &all[1] {
		t.Errorf("got %v, want the second condition", got)
	}
	if got := Find(all, v1.PodInitialized); got != nil {
		t.Errorf("missing condition: got %v, want nil", got)
	}
	for c, want := range map[v1.PodConditionType]bool{v1.PodScheduled: true, v1.PodReady: false, v1.PodInitialized: false} {
		if got := IsTrue(all, c); got != want {
			t.Errorf("%s: got %t, want %t", c, got, want)
		}
	}
}
