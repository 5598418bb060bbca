package cluster

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/nodesync"
)

// TestRun_NodeStart checks the steps of the registration and their order. If the Node exists, there must
// be no registration.
func TestRun_NodeStart(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*testNode)
		want    []nodesync.RegistrationStep
	}{
		{"new", func(*testNode) {}, []nodesync.RegistrationStep{nodesync.Attempted, nodesync.Registered, nodesync.Ready}},
		{"not ready", func(l *testNode) { l.state.View().NodeObject.Status.Conditions[1].Status = v1.ConditionFalse }, []nodesync.RegistrationStep{nodesync.Attempted, nodesync.Registered}},
		{"existing", func(l *testNode) { l.node = &v1.Node{}; l.node.Name, l.node.UID = "n1", "u1" }, []nodesync.RegistrationStep{nodesync.Ready}},
	} {
		var got []nodesync.RegistrationStep
		prepare := func(l *testNode, o *Options) {
			o.Node.OnRegistrationStep = func(step nodesync.RegistrationStep, _ time.Time) { got = append(got, step) }
			test.prepare(l)
		}
		runNode(t, prepare, func(*testNode) {})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got steps %v, want %v", test.name, got, test.want)
		}
	}
}
