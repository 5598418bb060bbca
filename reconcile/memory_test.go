package reconcile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"podd/manifest"
	"podd/runtime/runtimetest"
)

const job = `restartPolicy: Never
volumes: [{name: v, emptyDir: {}}]
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 3"], volumeMounts: [{name: v, mountPath: /v}]}]`

// journal is the path of a pod's journal.
func (m *machine) journal(p *manifest.Pod) string {
	return filepath.Join(m.root, "pods", string(p.UID), "journal.json")
}

// TestFinishedSurvives: a pod that ran to its end is not run again, though podd
// starts anew and the runtime lost its records.
func TestFinishedSurvives(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "job", job))
		m.settle()
		m.is("job 0 dead", "job/app 0 exited 3")
		m.kill()
		m.loseRecords(t)
		m.Forget()
		m.start()
		m.settle()
		m.is()
		m.did()
		if r := m.report("job"); r.Decision.Rule != "finished" || !r.Finished.Failed || r.Pod.Status.Phase != "Failed" {
			t.Errorf("%s %+v %s", r.Decision, r.Finished, r.Pod.Status.Phase)
		}
		// Removed and applied again it is another run.
		m.want()
		m.settle()
		m.want(pod(t, "job", job))
		m.settle()
		m.is("job 0 dead", "job/app 0 exited 3")
	})
}

// loseRecords removes every sandbox behind podd's back.
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

// TestStoppingSurvives: a termination goes on with the rest of its grace when
// podd starts anew in the middle of it, whatever it hears of first.
func TestStoppingSurvives(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "web", "terminationGracePeriodSeconds: 30\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
		m.settle()
		began := time.Now()
		m.want()
		m.pass(18 * time.Second)
		m.kill()
		m.pass(2 * time.Second)
		m.start()
		m.settle()
		m.is()
		calls := m.Calls("StopPodSandbox")
		if took := calls[len(calls)-1].At.Sub(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("ended after %s, not 30s", took)
		}
	})
}

// TestBrokenJournal: whatever has become of the journal of a pod that runs, it
// runs on with its volumes, and all of it is removed with its manifest.
func TestBrokenJournal(t *testing.T) {
	breaks := map[string]func(path string) error{
		"gone":    os.Remove,
		"garbage": func(path string) error { return os.WriteFile(path, []byte("{\"uid\": \"x"), 0o600) },
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"of nobody": func(path string) error {
			return os.WriteFile(path, []byte(`{"uid": "`+filepath.Base(filepath.Dir(path))+`"}`), 0o600)
		},
		"of another": func(path string) error {
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
	m.want(p)
	m.settle()
	kept := filepath.Join(filepath.Dir(m.journal(p)), "volumes", "kubernetes.io~empty-dir", "v", "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.kill()
	if err := damage(m.journal(p)); err != nil {
		t.Fatal(err)
	}
	m.Forget()
	if removed {
		m.want()
	}
	m.start()
	m.settle()
	if !removed {
		m.did()
		if _, err := os.Stat(kept); err != nil {
			t.Fatalf("the volume of a pod that runs: %v", err)
		}
	}
	m.want()
	m.settle()
	m.is()
	if len(m.dirs()) > 0 {
		t.Errorf("left: %v", m.dirs())
	}
}

// TestLostDirectories: what nobody knows the pod of goes once everything was
// seen; what is no pod directory stays.
func TestLostDirectories(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.foreign("other")
		for _, name := range []string{"of-nobody", "foreign-other", "lost+found", ".hidden"} {
			if err := os.MkdirAll(filepath.Join(m.root, "pods", name, "volumes"), 0o750); err != nil {
				t.Fatal(err)
			}
		}
		m.start()
		m.settle()
		if n := len(m.dirs()); n != 4 {
			t.Fatalf("removed before the sources were seen: %v", m.dirs())
		}
		m.want()
		m.settle()
		if want := []string{".hidden", "foreign-other", "lost+found"}; !slices.Equal(m.dirs(), want) {
			t.Errorf("directories %v, want %v", m.dirs(), want)
		}
	})
}

// TestLateCall: a call of a podd that was killed may still make a sandbox, and
// cgroups of its pod; the way to them stays until that is over.
func TestLateCall(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.Inject(runtimetest.Fault{Method: "RunPodSandbox"})
		m.want(pod(t, "web", web))
		m.settle()
		m.kill()
		m.want()
		m.start()
		m.pass(5 * time.Second)
		if len(m.dirs()) != 1 {
			t.Errorf("directories %v", m.dirs())
		}
		m.settle()
		if len(m.dirs()) != 0 {
			t.Errorf("left: %v", m.dirs())
		}
	})
}

// TestJournalNotWritten: a pod is not given up before its end is remembered.
func TestJournalNotWritten(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 5; exit 0"]}]`)
		m.start()
		m.want(p)
		m.pass(2 * time.Second)
		blocker := m.journal(p) + ".new"
		if err := os.MkdirAll(filepath.Join(blocker, "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("job 0 ready", "job/app 0 exited 0")
		if err := os.RemoveAll(blocker); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("job 0 dead", "job/app 0 exited 0")
		m.restart()
		m.is("job 0 dead", "job/app 0 exited 0")
	})
}

// TestReadded: a pod is removed and applied again in every phase of its life.
func TestReadded(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 12 * time.Millisecond, 25 * time.Millisecond, 40 * time.Millisecond, time.Second} {
		for _, gap := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 2 * time.Second, 3 * time.Second} {
			run(t, func(t *testing.T, m *machine) {
				for _, method := range []string{"RunPodSandbox", "CreateContainer", "StartContainer", "StopPodSandbox", "RemovePodSandbox"} {
					m.Inject(runtimetest.Fault{Method: method, Delay: 10 * time.Millisecond})
				}
				p := pod(t, "web", "terminationGracePeriodSeconds: 2\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
				m.start()
				m.want(p)
				m.pass(after)
				m.want()
				m.pass(gap)
				m.want(p)
				m.pass(time.Minute)
				if got := m.alive(); !slices.Equal(got, []string{"web ready", "web/app running"}) {
					t.Fatalf("after %s and %s there is %v\n%s", after, gap, got, m.story())
				}
				m.want()
				m.pass(time.Minute)
				m.is()
				if len(m.dirs()) > 0 || m.report("web") != nil {
					t.Fatalf("after %s and %s there is left %v %v", after, gap, m.dirs(), m.report("web"))
				}
			})
		}
	}
}
