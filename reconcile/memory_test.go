package reconcile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime/runtimetest"
)

const job = `restartPolicy: Never
volumes: [{name: v, emptyDir: {}}]
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 3"], volumeMounts: [{name: v, mountPath: /v}]}]`

// journal returns the path of a pod's journal.
func (m *machine) journal(p *manifest.Pod) string {
	return filepath.Join(m.root, "pods", string(p.UID), "journal.json")
}

// TestFinishedSurvives checks that a finished pod is not run again, even if podd is restarted and
// the runtime no longer lists its containers.
func TestFinishedSurvives(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "job", job))
		m.settle()
		m.wantState("job 0 dead", "job/app 0 exited 3")
		m.kill()
		m.loseRecords(t)
		m.ForgetCalls()
		m.start()
		m.settle()
		m.wantState()
		m.wantCalls()
		if r := m.report("job"); r.Decision.Rule != plan.RuleFinished || !r.Finished.Failed || r.Pod.Status.Phase != "Failed" {
			t.Errorf("got decision %s, PodEnd %+v and phase %s, want rule %s, a PodEnd with Failed true, and phase Failed", r.Decision, r.Finished, r.Pod.Status.Phase, plan.RuleFinished)
		}
		// If the manifest is removed and added again, the finished pod starts again.
		m.setPods()
		m.settle()
		m.setPods(pod(t, "job", job))
		m.settle()
		m.wantState("job 0 dead", "job/app 0 exited 3")
	})
}

// loseRecords removes all sandboxes and their containers directly from the runtime, so that podd
// finds no records of them.
func (m *machine) loseRecords(t *testing.T) {
	t.Helper()
	for _, r := range m.reports {
		for _, inc := range r.Observed {
			if err := m.RemovePodSandbox(t.Context(), inc.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// withGrace is a pod that stops only at the end of its grace period of 30 s.
const withGrace = "terminationGracePeriodSeconds: 30\n" + `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`

// restartInGrace runs p, which must be withGrace, and removes it. In the middle of the grace period
// it stops podd, calls the function between, and starts podd again. The test fails unless p is
// stopped after 30 s.
func (m *machine) restartInGrace(p *manifest.Pod, between func()) {
	m.t.Helper()
	m.setPods(p)
	m.settle()
	began := time.Now()
	m.setPods()
	m.advance(18 * time.Second)
	m.kill()
	between()
	m.start()
	m.settle()
	m.wantState()
	calls := m.Calls("StopPodSandbox")
	if took := calls[len(calls)-1].At.Sub(began); took < 30*time.Second || took > 31*time.Second {
		m.t.Errorf("time until the container stopped: got %s, want 30s", took)
	}
}

// TestStoppingSurvives checks that a termination continues with the rest of its grace period if podd
// is restarted meanwhile.
func TestStoppingSurvives(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.restartInGrace(pod(t, "web", withGrace), func() { m.advance(2 * time.Second) })
	})
}

// TestBrokenJournal checks that a running pod keeps running with its volumes if its journal is
// broken in any way. After its manifest was removed, everything of the pod is removed.
func TestBrokenJournal(t *testing.T) {
	breaks := map[string]func(path string) error{
		"removed": os.Remove,
		"garbage": func(path string) error { return os.WriteFile(path, []byte("{\"uid\": \"x"), 0o600) },
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"without a pod name": func(path string) error {
			return os.WriteFile(path, []byte(`{"uid": "`+filepath.Base(filepath.Dir(path))+`"}`), 0o600)
		},
		"of another pod": func(path string) error {
			return os.WriteFile(path, []byte(`{"uid":"other","key":{"Namespace":"default","Name":"other"}}`), 0o600)
		},
		"a link": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink("/etc/passwd", path)
		},
		"a pipe": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return syscall.Mkfifo(path, 0o600)
		},
		"of a newer version of podd": func(path string) error {
			return os.WriteFile(path, []byte(`{"version":999,"uid":{},"key":"default/web"}`), 0o600)
		},
		"a directory": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(path, "in the way"), 0o700)
		},
		"too big": func(path string) error { return os.WriteFile(path, make([]byte, 2<<20), 0o600) },
	}
	for name, damage := range breaks {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, removed %v", name, removed), func(t *testing.T) {
				run(t, func(t *testing.T, m *machine) { brokenJournal(t, m, damage, removed) })
			})
		}
	}
}

func brokenJournal(t *testing.T, m *machine, damage func(string) error, removed bool) {
	p := pod(t, "web", `volumes: [{name: v, emptyDir: {}}]
containers: [{name: app, image: "web:1", volumeMounts: [{name: v, mountPath: /v}]}]`)
	m.start()
	m.setPods(p)
	m.settle()
	kept := filepath.Join(filepath.Dir(m.journal(p)), "volumes", "kubernetes.io~empty-dir", "v", "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.kill()
	if err := damage(m.journal(p)); err != nil {
		t.Fatal(err)
	}
	m.ForgetCalls()
	if removed {
		m.setPods()
	}
	m.start()
	m.settle()
	if !removed {
		m.wantCalls()
		if _, err := os.Stat(kept); err != nil {
			t.Fatalf("volume of the running pod: got error %v, want none", err)
		}
	}
	m.setPods()
	m.settle()
	m.wantState()
	if len(m.dirs()) > 0 {
		t.Errorf("pod directories after the removal: got %v, want none", m.dirs())
	}
}

// TestLostDirectories checks that directories that belong to no pod are removed as soon as all
// sources were read and the runtime was observed. Other directories are kept.
func TestLostDirectories(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.makeForeign("other")
		for _, name := range []string{"of-nobody", "foreign-other", "lost+found", ".hidden"} {
			if err := os.MkdirAll(filepath.Join(m.root, "pods", name, "volumes"), 0o750); err != nil {
				t.Fatal(err)
			}
		}
		m.start()
		m.settle()
		if n := len(m.dirs()); n != 4 {
			t.Fatalf("pod directories before the sources are read: got %v, want 4", m.dirs())
		}
		m.setPods()
		m.settle()
		if want := []string{".hidden", "foreign-other", "lost+found"}; !slices.Equal(m.dirs(), want) {
			t.Errorf("pod directories: got %v, want %v", m.dirs(), want)
		}
	})
}

// TestLateCall checks that the directory of a pod is kept while a call of a podd that was
// killed may still create a sandbox and cgroups.
func TestLateCall(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.Inject(runtimetest.Fault{Method: "RunPodSandbox"})
		m.setPods(pod(t, "web", web))
		m.settle()
		m.kill()
		m.setPods()
		m.start()
		m.advance(5 * time.Second)
		if len(m.dirs()) != 1 {
			t.Errorf("pod directories: got %v, want one", m.dirs())
		}
		m.settle()
		if len(m.dirs()) != 0 {
			t.Errorf("pod directories: got %v, want none", m.dirs())
		}
	})
}

// TestLateCall_Canceled checks that the directory of a removed pod is kept while a canceled call may
// still create cgroups.
func TestLateCall_Canceled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Delay: time.Minute})
		m.setPods(pod(t, "web", web))
		m.settle()
		m.setPods()
		m.advance(15 * time.Second) // the runtime gets 10 s to complete the call
		if len(m.dirs()) != 1 || m.report("web") == nil {
			t.Errorf("5 s after the call was canceled: got pod directories %v and report %v, want the directory and the report of the pod", m.dirs(), m.report("web"))
		}
		m.settle()
		if len(m.dirs()) != 0 || m.report("web") != nil {
			t.Errorf("25 s after the call was canceled: got pod directories %v and report %v, want none", m.dirs(), m.report("web"))
		}
	})
}

// TestJournalNotWritten checks that the end of a pod that runs once is not published before it is
// in the journal, and is the same after a restart.
func TestJournalNotWritten(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 5; exit 0"]}]`)
		m.start()
		m.setPods(p)
		m.advance(2 * time.Second)
		m.blockJournal(p)
		m.settle()
		wantPhase := func(want v1.PodPhase) {
			t.Helper()
			m.wantState("job 0 dead", "job/app 0 exited 0")
			if got := m.report("job").Pod.Status.Phase; got != want {
				t.Errorf("phase: got %s, want %s", got, want)
			}
		}
		wantPhase(v1.PodRunning)
		m.unblockJournal(p)
		m.settle()
		wantPhase(v1.PodSucceeded)
		m.restart()
		wantPhase(v1.PodSucceeded)
	})
}

// TestReapplied removes the manifest of a pod and adds it again, at many moments of the start and
// of the stop. It checks that the pod then runs, and that nothing remains after another removal.
func TestReapplied(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 12 * time.Millisecond, 25 * time.Millisecond, 40 * time.Millisecond, time.Second} {
		for _, gap := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 2 * time.Second, 3 * time.Second} {
			run(t, func(t *testing.T, m *machine) {
				for _, method := range []string{"RunPodSandbox", "CreateContainer", "StartContainer", "StopPodSandbox", "RemovePodSandbox"} {
					m.Inject(runtimetest.Fault{Method: method, Delay: 10 * time.Millisecond})
				}
				p := pod(t, "web", "terminationGracePeriodSeconds: 2\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
				m.start()
				m.setPods(p)
				m.advance(after)
				m.setPods()
				m.advance(gap)
				m.setPods(p)
				m.advance(time.Minute)
				if got := m.alive(); !slices.Equal(got, []string{"web ready", "web/app running"}) {
					t.Fatalf("manifest removed after %s and added again after %s: got %v, want pod web running\n%s", after, gap, got, m.state())
				}
				m.setPods()
				m.advance(time.Minute)
				m.wantState()
				if len(m.dirs()) > 0 || m.report("web") != nil {
					t.Fatalf("manifest removed after %s and added again after %s: got directories %v and report %v, want none", after, gap, m.dirs(), m.report("web"))
				}
			})
		}
	}
}
