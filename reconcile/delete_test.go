package reconcile_test

import (
	"context"
	"testing"
	"time"
)

const slowEnd = "terminationGracePeriodSeconds: 7\n" + `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`

// ends fails the test unless the pod that is not wanted any more is killed after
// just its own grace.
func (m *machine) ends() {
	m.t.Helper()
	m.Forget()
	began := time.Now()
	m.want()
	m.settle()
	m.is()
	if took := m.Calls("StopPodSandbox")[0].At.Sub(began); took < 7*time.Second || took > 8*time.Second {
		m.t.Errorf("killed after %s, not its grace", took)
	}
}

// TestDeleteIsForOneEnd: the grace that was asked for one end of a pod is not that
// of the next, though the pod is the same.
func TestDeleteIsForOneEnd(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := pod(t, "web", slowEnd)
		m.start()
		m.want(web)
		m.settle()
		m.want()
		m.pass(time.Second)
		if err := m.life().router.Delete(context.Background(), key("web"), web.UID, 0); err != nil {
			t.Fatal(err)
		}
		m.want(pod(t, "web", slowEnd)) // before anything of it is gone
		m.settle()
		m.is("web 1 ready", "web/app 1 running")
		m.ends()
	})
}

// TestSpare: what was asked for and taken back is no pod's end.
func TestSpare(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := pod(t, "web", slowEnd)
		m.start()
		m.want(web)
		m.settle()
		router := m.life().router
		if err := router.Delete(context.Background(), key("web"), web.UID, 0); err != nil {
			t.Fatal(err)
		}
		m.settle()
		if err := router.Spare(context.Background(), key("web"), web.UID); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		m.ends()
	})
}
