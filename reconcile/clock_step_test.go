package reconcile_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
)

// stepClock sets the wall clock forward by d, as an NTP client does, while no podd runs.
// Because time in a test cannot be set, it moves the times in the pod's journal into the
// past instead.
func (m *machine) stepClock(p *manifest.Pod, d time.Duration) {
	m.t.Helper()
	text, err := os.ReadFile(m.journal(p))
	if err != nil {
		m.t.Fatal(err)
	}
	moved := 0
	stepped := regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`).ReplaceAllStringFunc(string(text), func(quoted string) string {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, quoted)
		if err != nil {
			m.t.Fatal(err)
		}
		moved++
		return at.Add(-d).Format(`"` + time.RFC3339Nano + `"`)
	})
	// A journal without a checksum is read as a journal of an older podd.
	stepped = regexp.MustCompile(`,"checksum":"[0-9a-f]{8}"}$`).ReplaceAllString(stepped, "}")
	if moved == 0 {
		m.t.Fatalf("times in the journal: got none, want at least one: %s", text)
	}
	if err := os.WriteFile(m.journal(p), []byte(stepped), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// suspend suspends the host for d: the monotonic clock stops, and the clock that counts from the
// boot continues.
func (m *machine) suspend(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.booted = m.booted.Add(-d)
}

// TestSuspend checks that the time for which the host was suspended counts for deadlines and grace
// periods, as in a kubelet. This must not depend on whether podd is restarted afterwards.
func TestSuspend(t *testing.T) {
	for name, restart := range map[string]func(*machine){
		"podd runs on":         func(*machine) {},
		"podd starts again":    (*machine).restart,
		"podd started earlier": nil,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.start()
				late := pod(t, "late", `activeDeadlineSeconds: 7200
containers: [{name: app, image: "web:1"}]`)
				m.setPods(late, pod(t, "later", `activeDeadlineSeconds: 72000
containers: [{name: app, image: "web:1"}]`), pod(t, "stopped", `terminationGracePeriodSeconds: 7200
containers: [{name: app, image: "job:1", command: [sleep, inf], lifecycle: {preStop: {sleep: {seconds: 7000}}}}]`))
				m.advance(30 * time.Minute)
				if restart == nil {
					m.restart()
					restart = func(*machine) {}
				}
				m.setPods(late, m.set.Pods[key("later")])
				m.advance(time.Minute)
				m.suspend(8 * time.Hour)
				restart(m)
				m.advance(2 * time.Minute)
				if s := m.report("late").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" {
					t.Errorf("after the deadline: got phase %s and reason %q, want Failed and DeadlineExceeded", s.Phase, s.Reason)
				}
				if r := m.report("stopped"); r != nil {
					t.Errorf("after the grace period: got report %s, want none", r.Decision)
				}
				if s := m.report("later").Pod.Status; s.Phase != v1.PodRunning {
					t.Errorf("before the deadline: got phase %s and reason %q, want Running", s.Phase, s.Reason)
				}
				m.advance(11*time.Hour + 10*time.Minute)
				if s := m.report("later").Pod.Status; s.Phase != v1.PodRunning {
					t.Errorf("before the deadline: got phase %s and reason %q, want Running", s.Phase, s.Reason)
				}
				m.advance(20 * time.Minute)
				if s := m.report("later").Pod.Status; s.Phase != v1.PodFailed {
					t.Errorf("after the deadline: got phase %s and reason %q, want Failed", s.Phase, s.Reason)
				}
			})
		})
	}
}

// withDeadline is a pod that may be active for 100 s.
const withDeadline = `activeDeadlineSeconds: 100
containers: [{name: app, image: "web:1"}]`

var clockSteps = []time.Duration{-24 * time.Hour, -30 * time.Second, 0, 30 * time.Second, 24 * time.Hour, 50 * 365 * 24 * time.Hour}

// TestClockStepDeadline checks that a pod is active for activeDeadlineSeconds, even if the
// wall clock is set between two runs of podd.
func TestClockStepDeadline(t *testing.T) {
	for _, step := range clockSteps {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.start()
				p := pod(t, "web", withDeadline)
				m.setPods(p)
				m.settle()
				shown := m.report("web").Pod.Status.StartTime
				m.kill()
				m.stepClock(p, step)
				m.start()
				m.advance(75 * time.Second)
				if s := m.report("web").Pod.Status; s.Phase != v1.PodRunning || !s.StartTime.Time.Equal(shown.Add(-step)) {
					t.Errorf("after 95s: got phase %s, reason %q and start time %s, want phase Running and start time %s", s.Phase, s.Reason, s.StartTime, shown.Add(-step))
				}
				m.advance(10 * time.Second)
				if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" {
					t.Errorf("after 105s: got phase %s and reason %q, want Failed and DeadlineExceeded", s.Phase, s.Reason)
				}
			})
		})
	}
}

// TestClockStepGrace checks that a grace period that has begun keeps its length if the wall clock
// is set.
func TestClockStepGrace(t *testing.T) {
	for _, step := range clockSteps {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.start()
				p := pod(t, "web", withGrace)
				m.restartInGrace(p, func() { m.stepClock(p, step) })
			})
		})
	}
}

// TestClockStep_AnotherBoot checks that a pod does not exceed its deadline because the wall clock
// changes before the host boots again. The active time that the journal contains still counts
// toward the deadline.
func TestClockStep_AnotherBoot(t *testing.T) {
	for _, step := range clockSteps {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.start()
				p := pod(t, "web", withDeadline)
				m.setPods(p)
				m.settle()
				m.kill()
				m.stepClock(p, step)
				m.boot, m.booted = "boot 2", time.Now().Add(-10*time.Second)
				m.start()
				m.advance(80 * time.Second)
				if s := m.report("web").Pod.Status; s.Phase != v1.PodRunning {
					t.Errorf("after 90s of this boot: got phase %s and reason %q, want Running", s.Phase, s.Reason)
				}
				m.advance(15 * time.Second)
				if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" {
					t.Errorf("after 105s of this boot: got phase %s and reason %q, want Failed and DeadlineExceeded", s.Phase, s.Reason)
				}
			})
		})
	}
}

// TestClockStep_Waiting checks the deadline of a pod of a cluster that waits for a missing object.
// The status in the cluster contains the start time by the wall clock of the node.
func TestClockStep_Waiting(t *testing.T) {
	waiting := func(started *metav1.Time) *manifest.Pod {
		return clusterPod("web", func(p *v1.Pod) {
			p.Spec.ActiveDeadlineSeconds, p.Status.StartTime = new(int64(100)), started
			p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "missing"}}}}
		})
	}
	for _, step := range clockSteps {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options = useCluster
				m.start()
				p := waiting(nil)
				m.setClusterPods(true, p)
				m.settle()
				stepped := metav1.NewTime(m.report("web").Pod.Status.StartTime.Add(-step))
				m.kill()
				m.stepClock(p, step)
				m.setClusterPods(true, waiting(&stepped))
				m.start()
				m.advance(75 * time.Second)
				if s := m.report("web").Pod.Status; s.Phase != v1.PodPending {
					t.Errorf("after 95s: got phase %s and reason %q, want Pending", s.Phase, s.Reason)
				}
				m.advance(10 * time.Second)
				if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" {
					t.Errorf("after 105s: got phase %s and reason %q, want Failed and DeadlineExceeded", s.Phase, s.Reason)
				}
				m.setClusterPods(true)
				m.settle()
				if _, err := os.Stat(m.journal(p)); !os.IsNotExist(err) {
					t.Errorf("the journal of the deleted pod: got %v, want none", err)
				}
			})
		})
	}
}
