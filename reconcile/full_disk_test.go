package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
)

// blockJournal makes every write of a pod's journal fail until unblockJournal is called. It creates
// a directory that is not empty with the name of the spare file.
func (m *machine) blockJournal(p *manifest.Pod) {
	m.t.Helper()
	spare := m.journal(p) + ".new"
	if err := errors.Join(os.RemoveAll(spare), os.MkdirAll(filepath.Join(spare, "x"), 0o755)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) unblockJournal(p *manifest.Pod) {
	m.t.Helper()
	if err := os.RemoveAll(m.journal(p) + ".new"); err != nil {
		m.t.Fatal(err)
	}
}

// journaledEnd returns the plan.PodEnd in the journal of the pod; nil if there is none.
func (m *machine) journaledEnd(p *manifest.Pod) *plan.PodEnd {
	m.t.Helper()
	var j struct{ Finished *plan.PodEnd }
	text, err := os.ReadFile(m.journal(p))
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return j.Finished
}

// protection is a cause that ends a pod and must not wait for the disk. Function end applies the cause,
// and reason is the resulting reason in the status.
type protection struct {
	reason string
	end    func(*machine, *manifest.Pod)
}

// protections are the causes that end a pod although its journal cannot be written. The grace period
// of the pod is 5 s.
var protections = map[string]protection{
	"storage limit": {plan.ReasonEvicted, func(m *machine, p *manifest.Pod) {
		if err := m.current().router.Evict(m.t.Context(), p.Key, plan.Eviction{UID: p.UID, Hash: p.Hash, Message: "too big"}); err != nil {
			m.t.Fatal(err)
		}
	}},
	"deadline": {plan.ReasonDeadlineExceeded, func(m *machine, _ *manifest.Pod) { m.advance(2 * time.Minute) }},
	"node shutdown": {plan.ReasonTerminated, func(m *machine, _ *manifest.Pod) {
		m.options = func(o *reconcile.Options) { o.ShutdownGroups = byPriority }
		m.shutDown()
	}},
}

const limited = `restartPolicy: %s
activeDeadlineSeconds: 100
terminationGracePeriodSeconds: 5
volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]
containers: [{name: app, image: "job:1", command: [sleep, inf], volumeMounts: [{name: v, mountPath: /v}]}]`

// runLimited starts podd and a pod with a deadline and this restart policy.
func (m *machine) runLimited(policy string) *manifest.Pod {
	m.start()
	p := pod(m.t, "web", strings.Replace(limited, "%s", policy, 1))
	m.setPods(p)
	m.settle()
	return p
}

// TestProtectionWithoutJournal checks that a pod is stopped although its journal cannot be written.
// The pod exceeds a storage limit or its deadline, or is on a node that shuts down. The journal
// must be written as soon as possible.
func TestProtectionWithoutJournal(t *testing.T) {
	for name, test := range protections {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				p := m.runLimited("Always")
				m.blockJournal(p)
				test.end(m, p)
				m.settle()
				m.wantState("web 0 dead", "web/app 0 exited 137")
				s := m.report("web").Pod.Status
				if s.Phase != v1.PodFailed || s.Reason != test.reason {
					t.Errorf("got phase %s and reason %q, want Failed and %q\n%s", s.Phase, s.Reason, test.reason, m.state())
				}
				if fin := m.journaledEnd(p); fin != nil {
					t.Fatalf("end in the journal of a full disk: got %+v, want none", fin)
				}
				if m.report("web").IsEndRecorded {
					t.Error("report while the disk is full: got IsEndRecorded true, want false")
				}
				m.unblockJournal(p)
				m.advance(2 * time.Minute)
				if fin := m.journaledEnd(p); fin == nil || fin.Reason != test.reason {
					t.Errorf("end in the journal: got %+v, want reason %s", fin, test.reason)
				}
				if !m.report("web").IsEndRecorded {
					t.Error("report after the disk has space: got IsEndRecorded false, want true")
				}
				m.restart()
				if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != test.reason || !m.report("web").IsEndRecorded {
					t.Errorf("after a restart of podd: got phase %s, reason %q and IsEndRecorded %v, want Failed, %q and true\n%s", s.Phase, s.Reason, m.report("web").IsEndRecorded, test.reason, m.state())
				}
			})
		})
	}
}

// TestProtectionWithoutJournal_Crash kills podd after it stopped a pod and before it could write the
// reason. A pod with the restart policy Never has then failed, because its container has exited. With
// the policy Always, an evicted pod runs again, and any other pod is stopped again for the same reason.
func TestProtectionWithoutJournal_Crash(t *testing.T) {
	for name, test := range protections {
		for _, policy := range []string{"Always", "Never"} {
			t.Run(name+", "+policy, func(t *testing.T) {
				run(t, func(t *testing.T, m *machine) {
					p := m.runLimited(policy)
					m.blockJournal(p)
					test.end(m, p)
					m.settle()
					m.kill()
					m.unblockJournal(p)
					m.start()
					if test.reason == plan.ReasonTerminated {
						m.shutDown()
					}
					m.settle()
					phase, reason := v1.PodFailed, test.reason
					switch {
					case policy == "Never":
						reason = "" // the container of the pod has exited
					case reason == plan.ReasonEvicted:
						phase, reason = v1.PodRunning, ""
					}
					if s := m.report("web").Pod.Status; s.Phase != phase || s.Reason != reason {
						t.Errorf("got phase %s and reason %q, want %s and %q\n%s", s.Phase, s.Reason, phase, reason, m.state())
					}
				})
			})
		}
	}
}

// TestRemovalWithoutJournal checks that a pod whose manifest is removed is stopped although
// its journal cannot be written.
func TestRemovalWithoutJournal(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := m.runLimited("Always")
		m.blockJournal(p)
		m.setPods()
		m.settle()
		m.wantState()
		if _, err := os.Stat(m.journal(p)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("journal of the removed pod: got error %v, want %v", err, os.ErrNotExist)
		}
	})
}

// withSidecar is a pod that runs once, and a sidecar that outlives it.
const withSidecar = `restartPolicy: Never
activeDeadlineSeconds: 600
terminationGracePeriodSeconds: 5
initContainers: [{name: side, image: "side:1", restartPolicy: Always}]
volumes: [{name: v, emptyDir: {}}]
containers: [{name: app, image: "job:1", command: [sleep, inf], volumeMounts: [{name: v, mountPath: /v}]}]`

// TestEndWaitsForJournal checks that the end of a pod that runs once is not published before it is in
// the journal. Otherwise a crash of podd could make the pod run twice. The volumes of the pod are
// released before the journal is written, because the data of the pod may fill the disk.
func TestEndWaitsForJournal(t *testing.T) {
	for name, press := range map[string]func(*machine){
		"":              nil,
		"deadline":      func(m *machine) { m.advance(10 * time.Minute) },
		"node shutdown": func(m *machine) { m.shutDown() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				p := pod(t, "job", withSidecar)
				m.start()
				m.setPods(p)
				m.settle()
				m.blockJournal(p)
				m.takeEvents()
				m.ExitContainer("default/job/app", 0)
				m.settle()
				if got := m.takeEvents(); !strings.Contains(got, "Killing spec.initContainers{side}: Stopping container side\n") {
					t.Errorf("events: got\n%swant one for the stop of the sidecar", got)
				}
				if s := m.report("job").Pod.Status; s.Phase != v1.PodRunning {
					t.Fatalf("before the end is in the journal: got phase %s, want Running\n%s", s.Phase, m.state())
				}
				m.wantState("job 0 dead", "job/app 0 exited 0", "job/side 0 exited 143")
				if m.hasVolumes(p) {
					t.Error("volumes of the finished pod: got some, want none")
				}
				if r := m.report("job"); !r.Decision.NeedsUser || !strings.Contains(r.Decision.Why, "writing the journal of pod") {
					t.Errorf("decision: got %s, want a problem about writing the journal", r.Decision)
				}
				if press != nil {
					press(m)
					m.settle()
				}
				m.unblockJournal(p)
				m.advance(2 * time.Minute)
				if s := m.report("job").Pod.Status; s.Phase != v1.PodSucceeded {
					t.Errorf("after the disk has space: got phase %s, want Succeeded\n%s", s.Phase, m.state())
				}
				if fin := m.journaledEnd(p); fin == nil || fin.Failed {
					t.Errorf("end in the journal: got %+v, want a success", fin)
				}
				m.wantState("job 0 dead", "job/app 0 exited 0", "job/side 0 exited 143")
			})
		})
	}
}

// TestEndWaitsForJournal_Crash kills podd while the end of a pod that ran once waits for
// the journal. The pod does not run again: its end follows from the runtime's records.
func TestEndWaitsForJournal_Crash(t *testing.T) {
	for _, code := range []int32{0, 3} {
		run(t, func(t *testing.T, m *machine) {
			p := pod(t, "job", withSidecar)
			m.start()
			m.setPods(p)
			m.settle()
			m.blockJournal(p)
			m.ExitContainer("default/job/app", code)
			m.settle()
			m.kill()
			m.start()
			m.settle()
			m.unblockJournal(p)
			m.advance(2 * time.Minute)
			m.wantState("job 0 dead", fmt.Sprint("job/app 0 exited ", code), "job/side 0 exited 143")
			if fin := m.journaledEnd(p); fin == nil || fin.Failed != (code != 0) {
				t.Errorf("PodEnd in the journal: got %+v, want Failed %t", fin, code != 0)
			}
		})
	}
}

// hasVolumes reports whether the directory of a pod has volumes.
func (m *machine) hasVolumes(p *manifest.Pod) bool {
	m.t.Helper()
	_, err := os.Stat(filepath.Join(filepath.Dir(m.journal(p)), "volumes"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	return err == nil
}

// readOnlyDisk removes nothing.
type readOnlyDisk struct{ effect.Disk }

func (readOnlyDisk) Release(context.Context, types.UID) error { return syscall.EROFS }
func (readOnlyDisk) Remove(context.Context, types.UID) error  { return syscall.EROFS }

// TestShutdownOnReadOnlyDisk checks that a shutdown of the node ends once both pods have stopped,
// although their data on disk cannot be removed. One pod runs when the shutdown begins. The manifest of
// the other pod was removed.
func TestShutdownOnReadOnlyDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.disk = readOnlyDisk{m.disk}
		m.start()
		web := pod(t, "web", strings.Replace(limited, "%s", "Always", 1))
		m.setPods(web, pod(t, "gone", job))
		m.settle()
		m.setPods(web)
		m.settle()
		select {
		case err := <-m.shutDown():
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("node shutdown: not ended after a minute, want it ended\n%s", m.state())
		}
		m.wantState("web 0 dead", "web/app 0 exited 137")
		if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != plan.ReasonTerminated {
			t.Errorf("got phase %s and reason %q, want Failed and %q\n%s", s.Phase, s.Reason, plan.ReasonTerminated, m.state())
		}
	})
}

// TestStopAll_ReadOnlyDisk checks that StopAll returns once every pod has stopped, and reports the
// data on disk that cannot be removed.
func TestStopAll_ReadOnlyDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.disk = readOnlyDisk{m.disk}
		m.start()
		m.setPods(pod(t, "web", strings.Replace(limited, "%s", "Always", 1)))
		m.settle()
		done := make(chan error, 1)
		go func() { done <- m.current().router.StopAll(t.Context(), "podd down") }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "default/web") {
				t.Errorf("StopAll: got error %v, want one about default/web", err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("StopAll: not returned after a minute, want it returned\n%s", m.state())
		}
		if s := m.state(); strings.Contains(s, "running") {
			t.Errorf("after StopAll: got a running container, want none:\n%s", s)
		}
	})
}

// TestDeadlineWithoutJournal_Shutdown checks a pod that was stopped at its deadline while its journal
// could not be written. The reason of the failure stays the deadline if the node shuts down meanwhile.
func TestDeadlineWithoutJournal_Shutdown(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := m.runLimited("Always")
		m.blockJournal(p)
		m.advance(2 * time.Minute)
		m.options = func(o *reconcile.Options) { o.ShutdownGroups = byPriority }
		m.shutDown()
		m.settle()
		m.kill()
		m.unblockJournal(p)
		m.start()
		m.shutDown()
		m.settle()
		if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != plan.ReasonDeadlineExceeded {
			t.Errorf("got phase %s and reason %q, want Failed and %q\n%s", s.Phase, s.Reason, plan.ReasonDeadlineExceeded, m.state())
		}
	})
}

// slowDisk takes some time to remove a directory.
type slowDisk struct {
	effect.Disk
	remove time.Duration
}

func (d slowDisk) Remove(ctx context.Context, uid types.UID) error {
	<-time.After(d.remove)
	return d.Disk.Remove(ctx, uid)
}

// TestSlowRemovalWithoutJournal checks that podd waits without polling while it removes the directory
// of a pod whose journal could not be written. If podd polled, the clock of this test would not advance.
func TestSlowRemovalWithoutJournal(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.disk = slowDisk{m.disk, 5 * time.Minute}
		p := m.runLimited("Always")
		m.blockJournal(p)
		m.setPods()
		m.advance(6 * time.Minute)
		m.wantState()
		if left := m.dirs(); len(left) > 0 {
			t.Errorf("pod directories after the removal: got %q, want none", left)
		}
	})
}
