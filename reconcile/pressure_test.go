package reconcile_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/eviction/pressure"
)

// setPressure sets the pressure conditions of the node.
func (m *machine) setPressure(c pressure.Conditions) {
	m.t.Helper()
	if err := m.current().router.SetPressure(m.t.Context(), c); err != nil {
		m.t.Fatal(err)
	}
}

// wantPhase checks the phase and the reason of a pod.
func (m *machine) wantPhase(when, name string, phase v1.PodPhase, reason string) {
	m.t.Helper()
	if st := m.report(name).Pod.Status; st.Phase != phase || st.Reason != reason {
		m.t.Errorf("%s %s: got phase %s, reason %q (%s), want %s, %q; decision: %s", name, when, st.Phase, st.Reason, st.Message, phase, reason, m.report(name).Decision)
	}
}

// TestPressure_Admission checks that a pod that is added under node pressure starts when the
// pressure is over, that running pods keep running, and that an edit of a running pod waits.
func TestPressure_Admission(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		early := pod(t, "early", web)
		m.setPods(early)
		m.settle()
		m.setPressure(pressure.Conditions{Disk: true})
		m.setPods(early, pod(t, "late", web))
		m.settle()
		m.wantPhase("under pressure", "early", v1.PodRunning, "")
		m.wantPhase("under pressure", "late", v1.PodPending, "NodePressure")
		edited := pod(t, "early", `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
		m.setPods(edited, pod(t, "late", web))
		m.settle()
		m.wantPhase("edited under pressure", "early", v1.PodRunning, "")
		if r := m.report("early"); r.Successor == nil {
			t.Errorf("edited pod: got no successor, want the earlier version to keep running\n%s", m.state())
		}
		m.setPressure(pressure.Conditions{})
		m.settle()
		m.wantPhase("after the pressure", "late", v1.PodRunning, "")
		if r := m.report("early"); r.Successor != nil || r.Pod.Status.Phase != v1.PodRunning {
			t.Errorf("edited pod after the pressure: got decision %s, want the new version to run", r.Decision)
		}
	})
}
