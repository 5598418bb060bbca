package reconcile_test

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// termination returns the published termination state of a container.
func (m *machine) termination(name string) *v1.ContainerStateTerminated {
	m.t.Helper()
	c := m.report(name).Pod.Status.ContainerStatuses[0]
	for _, state := range []v1.ContainerState{c.State, c.LastTerminationState} {
		if state.Terminated != nil {
			return state.Terminated
		}
	}
	m.t.Fatalf("termination state of %s: got none, want one\n%s", name, m.state())
	return nil
}

func (m *machine) writeMessage(p *manifest.Pod, attempt, text string) {
	m.t.Helper()
	path := filepath.Join(m.root, "pods", string(p.UID), "containers/app", attempt)
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		m.t.Fatal(err)
	}
}

// TestMessages checks that a termination message is in the status and in the journal. If the
// manifest requires it, the last lines of the log replace the message.
func TestMessages(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		job := pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 3; exit 3"]}]`)
		web := pod(t, "web", `containers: [{name: app, image: "web:1"}]`)
		talks := pod(t, "talks", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 3; exit 3"], terminationMessagePolicy: FallbackToLogsOnError}]`)
		well := pod(t, "well", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 3; exit 0"], terminationMessagePolicy: FallbackToLogsOnError}]`)
		m.start()
		m.setPods(job, web, talks, well)
		m.advance(1e9)
		m.writeMessage(job, "00000000", "no disk\n")
		m.writeMessage(web, "00000000", "first")
		m.settle()
		m.ExitContainer("default/web/app", 1)
		m.settle()
		is := func(name, want string) {
			t.Helper()
			if got := m.termination(name).Message; got != want {
				t.Errorf("termination message of %s: got %q, want %q", name, got, want)
			}
		}
		all := func() {
			t.Helper()
			is("job", "no disk\n")
			is("web", "first")
			is("talks", "last words")
			is("well", "")
		}
		all()
		m.restart()
		all()

		// The file is removed, so that the next podd can read the message only from the journal.
		m.kill()
		if err := os.RemoveAll(filepath.Join(m.root, "pods", string(job.UID), "containers")); err != nil {
			t.Fatal(err)
		}
		m.start()
		m.settle()
		is("job", "no disk\n")

		// A link in place of the file is not followed.
		path := filepath.Join(m.root, "pods", string(web.UID), "containers/app/00000001")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", path); err != nil {
			t.Fatal(err)
		}
		m.ExitContainer("default/web/app", 1)
		m.advance(1e9)
		if got := m.termination("web").Message; len(got) > 200 {
			t.Errorf("termination message: got %q, want at most 200 bytes", got)
		}
	})
}
