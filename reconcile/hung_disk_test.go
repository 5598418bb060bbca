package reconcile_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile"
	"podd/reconcile/journal"
)

// hungDisk is a disk with writes that do not return while hung is set, until respond is called.
type hungDisk struct {
	hung   atomic.Bool
	answer chan struct{}
}

// useHungDisk makes the machine use a hungDisk.
func useHungDisk(m *machine) *hungDisk {
	d := &hungDisk{answer: make(chan struct{})}
	m.options = func(o *reconcile.Options) {
		o.Journals.Replace = slowJournals(func() {
			if d.hung.Load() {
				<-d.answer
			}
		})
	}
	return d
}

// slowJournals stores journals in files, and calls wait before each write.
func slowJournals(wait func()) func(dir string, data []byte, durable bool) error {
	return func(dir string, data []byte, durable bool) error {
		wait()
		return journal.Replace(dir, data, durable)
	}
}

func (d *hungDisk) respond() { d.hung.Store(false); close(d.answer) }

// TestProtectionOnHungDisk checks that a pod is stopped with its sidecars although the disk does
// not respond. The pod exceeds a storage limit or its deadline, or is on a node that shuts down.
// The reason must be written as soon as the disk responds.
func TestProtectionOnHungDisk(t *testing.T) {
	for name, test := range protections {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				d := useHungDisk(m)
				m.start()
				p := pod(t, "web", `activeDeadlineSeconds: 100
terminationGracePeriodSeconds: 5
initContainers: [{name: side, image: "side:1", restartPolicy: Always}]
containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
				m.setPods(p)
				m.settle()
				d.hung.Store(true)
				test.end(m, p)
				m.settle()
				m.wantState("web 0 dead", "web/app 0 exited 137", "web/side 0 exited 143")
				d.respond()
				m.settle()
				if fin := m.journaledEnd(p); fin == nil || fin.Reason != test.reason {
					t.Errorf("end in the journal: got %+v, want reason %s", fin, test.reason)
				}
				m.restart()
				if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != test.reason {
					t.Errorf("after a restart: got phase %s and reason %q, want Failed and %q\n%s", s.Phase, s.Reason, test.reason, m.state())
				}
			})
		})
	}
}

// TestRemovalOnHungDisk checks that a pod whose manifest is removed is stopped although the disk
// does not respond. Its directory is removed once the disk responds.
func TestRemovalOnHungDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		d := useHungDisk(m)
		m.runLimited("Always")
		d.hung.Store(true)
		m.setPods()
		m.settle()
		m.wantState()
		if len(m.dirs()) != 1 {
			t.Errorf("pod directories during a write: got %q, want one", m.dirs())
		}
		d.respond()
		m.settle()
		if len(m.dirs()) > 0 || m.report("web") != nil {
			t.Errorf("after the removal: got directories %q and report %v, want none\n%s", m.dirs(), m.report("web"), m.state())
		}
	})
}

// TestEndOnSlowDisk checks that the end of a pod that runs once is published as soon as the journal
// is written. Each write takes longer than the time after which podd reports a slow disk.
func TestEndOnSlowDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var slow atomic.Bool
		m.options = func(o *reconcile.Options) {
			o.Journals.Replace = slowJournals(func() {
				if slow.Load() {
					<-time.After(30 * time.Second)
				}
			})
		}
		p := pod(t, "job", withSidecar)
		m.start()
		m.setPods(p)
		m.settle()
		slow.Store(true)
		m.ExitContainer("default/job/app", 0)
		m.settle()
		m.wantState("job 0 dead", "job/app 0 exited 0", "job/side 0 exited 143")
		if r := m.report("job"); r.Pod.Status.Phase != v1.PodRunning || !r.Decision.NeedsUser || !strings.Contains(r.Decision.Why, "disk has not finished") {
			t.Errorf("while the disk hangs: got phase %s and decision %s, want Running with a problem of the disk", r.Pod.Status.Phase, r.Decision)
		}
		m.advance(3 * time.Minute)
		if s := m.report("job").Pod.Status; s.Phase != v1.PodSucceeded {
			t.Errorf("after the disk responds: got phase %s, want Succeeded\n%s", s.Phase, m.state())
		}
		m.wantState("job 0 dead", "job/app 0 exited 0", "job/side 0 exited 143")
		if fin := m.journaledEnd(p); fin == nil || fin.Failed {
			t.Errorf("end in the journal: got %+v, want a success", fin)
		}
		m.kill()
		m.advance(time.Minute) // wait for the writes that may still be in progress
	})
}

// TestStopPoddOnHungDisk checks that podd ends soon although the disk does not respond.
func TestStopPoddOnHungDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		d := useHungDisk(m)
		p := m.runLimited("Always")
		d.hung.Store(true)
		protections["storage limit"].end(m, p)
		m.settle()
		began := time.Now()
		m.kill()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("time until podd exited: got %s, want at most 5s", took)
		}
		d.respond()
		synctest.Wait()
	})
}
