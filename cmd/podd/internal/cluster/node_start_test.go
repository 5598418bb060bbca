package cluster

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A nodeStartLog is a NodeStartRecorder that stores the names of the steps.
type nodeStartLog struct{ steps []string }

func (l *nodeStartLog) RecordRegistrationAttempt(time.Time) { l.steps = append(l.steps, "attempt") }
func (l *nodeStartLog) RecordRegistration(time.Time)        { l.steps = append(l.steps, "registered") }
func (l *nodeStartLog) RecordNodeReady(time.Time)           { l.steps = append(l.steps, "ready") }

// TestRun_NodeStart checks that the steps of the registration are recorded in order, and that there is
// no registration if the Node exists.
func TestRun_NodeStart(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*testNode)
		want    []string
	}{
		{"new", func(*testNode) {}, []string{"attempt", "registered", "ready"}},
		{"not ready", func(l *testNode) { l.state.View().NodeObject.Status.Conditions[1].Status = v1.ConditionFalse }, []string{"attempt", "registered"}},
		{"existing", func(l *testNode) { l.node = &v1.Node{}; l.node.Name, l.node.UID = "n1", "u1" }, []string{"ready"}},
	} {
		var log nodeStartLog
		prepare := func(l *testNode, o *Options) {
			o.NodeStart = &log
			test.prepare(l)
		}
		runNode(t, prepare, func(*testNode) {})
		if !slices.Equal(log.steps, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, log.steps, test.want)
		}
	}
}
