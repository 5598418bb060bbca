package reconcile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// makeOrphan creates a pod directory with a file in a volume and returns its path.
func (m *machine) makeOrphan(t *testing.T, uid string) string {
	t.Helper()
	dir := filepath.Join(m.root, "pods", uid)
	if err := os.MkdirAll(filepath.Join(dir, "volumes/kubernetes.io~empty-dir/v"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "volumes/kubernetes.io~empty-dir/v/data"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nodeProblems waits until podd is idle and returns the problems that concern no single pod.
func (m *machine) nodeProblems() []string {
	m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, p := range m.problems {
		all = append(all, p.String())
	}
	return all
}

// TestUnreadableJournal checks that the directory of an unknown pod is kept and reported if
// its journal exists and cannot be read, until a user removes it.
func TestUnreadableJournal(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(path string) error
		cause  string
	}{
		"garbage": {func(path string) error { return os.WriteFile(path, []byte(`{"uid": "x`), 0o600) }, "invalid JSON"},
		"of another pod": {func(path string) error {
			return os.WriteFile(path, []byte(`{"uid":"other","key":{"Namespace":"default","Name":"other"}}`), 0o600)
		}, `journal of another pod, "default/other"`},
		"newer": {func(path string) error {
			return os.WriteFile(path, []byte(`{"version":999,"uid":{},"key":"default/web"}`), 0o600)
		}, "version 999"},
		"too large": {func(path string) error { return os.WriteFile(path, make([]byte, 2<<20), 0o600) }, "more than 1048576 bytes"},
		"a link":    {func(path string) error { return os.Symlink("/nowhere", path) }, "not a regular file"},
		"a pipe":    {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		"a directory": {func(path string) error {
			return os.MkdirAll(filepath.Join(path, "in it"), 0o700)
		}, "not a regular file"},
		"an I/O error": {func(path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			// Reading the journal fails, because the first page of the process's memory is not
			// mapped.
			return unix.Mount("/proc/self/mem", path, "", unix.MS_BIND, "")
		}, "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				dir := m.makeOrphan(t, "of-nobody")
				journal := filepath.Join(dir, "journal.json")
				if err := c.damage(journal); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { unix.Unmount(journal, unix.MNT_DETACH) })
				m.setPods()
				for range 2 {
					m.start()
					all := m.nodeProblems()
					if len(all) != 1 || !strings.Contains(all[0], journal) || !strings.Contains(all[0], c.cause) || !strings.Contains(all[0], "podd orphans rm of-nobody") {
						t.Errorf("problems: got %q, want one about %s because of %q", all, journal, c.cause)
					}
					if _, err := os.Stat(filepath.Join(dir, "volumes/kubernetes.io~empty-dir/v/data")); err != nil {
						t.Fatal(err)
					}
					m.kill()
				}
				m.start()
				m.settle()
				err := m.current().router.RemoveOrphan(t.Context(), "of-nobody")
				if name == "an I/O error" {
					if err == nil || !strings.Contains(err.Error(), journal) {
						t.Errorf("removing a directory with a mount in it: got error %v, want one that names %s", err, journal)
					}
					return
				}
				if err != nil || len(m.dirs()) > 0 {
					t.Errorf("removing the directory: got error %v and remaining directories %q, want no error and no directories", err, m.dirs())
				}
				if all := m.nodeProblems(); len(all) > 0 {
					t.Errorf("problems after the removal: got %q, want none", all)
				}
			})
		})
	}
}

// TestUnreadableJournal_IncompleteSources checks that unreadable journals are reported, and
// nothing is removed, while a source such as a URL that does not respond was not read yet.
func TestUnreadableJournal_IncompleteSources(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "web", `containers: [{name: app, image: "web:1"}]`)
		of := filepath.Join(m.makeOrphan(t, string(p.UID)), "journal.json")
		ofNobody := filepath.Join(m.makeOrphan(t, "of-nobody"), "journal.json")
		for _, journal := range []string{of, ofNobody} {
			if err := os.WriteFile(journal, []byte("bad"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		problems := func(when string, want ...string) {
			t.Helper()
			all := m.nodeProblems()
			for _, w := range want {
				if !slices.ContainsFunc(all, func(s string) bool {
					return strings.Contains(s, w) && strings.Contains(s, "cannot be read: invalid JSON")
				}) {
					t.Errorf("%s: got problems %q, want one with %q", when, all, w)
				}
			}
			if len(all) != len(want) || len(m.dirs()) != 2 {
				t.Errorf("%s: got problems %q and directories %q, want %d problems and 2 directories", when, all, m.dirs(), len(want))
			}
		}
		m.start()
		problems("before any source was read", of, ofNobody)
		m.set = &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{p.Key: p}, CompleteSources: map[string]bool{}}
		send(m.current().ctx, m.current().sets, m.set)
		problems("before all sources were read", ofNobody) // a new journal was written for the pod "web"
		if _, err := m.current().router.Orphans(t.Context()); err == nil {
			t.Error("Orphans before all sources were read: got no error, want one")
		}
		m.setPods(p)
		problems("after all sources were read", "podd orphans rm of-nobody")
	})
}

// TestEmptyJournal checks that an empty journal, which a power cut can leave, is treated like no
// journal. A directory with data is kept, a desired pod starts, and neither is reported as
// unreadable.
func TestEmptyJournal(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
		m.makeOrphan(t, "of-nobody")
		for _, dir := range []string{"of-nobody", "bare", string(p.UID)} {
			journal := filepath.Join(m.root, "pods", dir, "journal.json")
			if err := errors.Join(os.MkdirAll(filepath.Dir(journal), 0o750), os.WriteFile(journal, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		m.setPods(p)
		m.start()
		all := m.nodeProblems()
		if len(all) != 1 || !strings.Contains(all[0], "pod directories that have no journal") || !strings.Contains(all[0], "of-nobody") {
			t.Errorf("problems: got %q, want one about the directory without a journal", all)
		}
		m.wantState("job 0 ready", "job/app 0 running")
		if want := []string{string(p.UID), "of-nobody"}; !slices.Equal(m.dirs(), want) {
			t.Errorf("pod directories: got %q, want %q", m.dirs(), want)
		}
	})
}

// TestOtherAgentsDirectories checks pod directories that another agent has created. Directories with data
// or mounts are kept and reported in one problem, and a user can remove them.
func TestOtherAgentsDirectories(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.makeForeign("other")
		m.makeOrphan(t, "with-data")
		m.makeOrphan(t, "with-data-too")
		m.makeOrphan(t, "foreign-other")
		for _, dir := range []string{"without/volumes/kubernetes.io~empty-dir/v", "mounted/volumes/kubernetes.io~nfs/v"} {
			if err := os.MkdirAll(filepath.Join(m.root, "pods", dir), 0o750); err != nil {
				t.Fatal(err)
			}
		}
		at := filepath.Join(m.root, "pods/mounted/volumes/kubernetes.io~nfs/v")
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		m.start()
		m.setPods()
		all := m.nodeProblems()
		if want := []string{"foreign-other", "mounted", "with-data", "with-data-too"}; !slices.Equal(m.dirs(), want) {
			t.Fatalf("pod directories: got %q, want %q", m.dirs(), want)
		}
		if len(all) != 1 || !strings.Contains(all[0], "pod directories that have no journal") || !strings.Contains(all[0], "mounted, with-data, with-data-too") || !strings.Contains(all[0], "podd orphans") {
			t.Errorf("problems: got %q, want one that names three directories and podd orphans", all)
		}
		m.kill()
		m.start()
		m.settle()
		router := m.current().router
		orphans, err := router.Orphans(t.Context())
		if err != nil || len(orphans) != 3 || orphans[0].UID != "mounted" || orphans[1].Path != filepath.Join(m.root, "pods/with-data") {
			t.Errorf("Orphans: got %+v (error %v), want three", orphans, err)
		}
		for _, uid := range []types.UID{"foreign-other", "without", "../x"} {
			if err := router.RemoveOrphan(t.Context(), uid); err == nil {
				t.Errorf("RemoveOrphan(%s): got no error, want one", uid)
			}
		}
		if err := router.RemoveOrphan(t.Context(), "mounted"); err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("RemoveOrphan of a directory with a mount: got error %v, want one that names %s", err, at)
		}
		if err := router.RemoveOrphan(t.Context(), "with-data"); err != nil {
			t.Error(err)
		}
		if want := []string{"foreign-other", "mounted", "with-data-too"}; !slices.Equal(m.dirs(), want) {
			t.Errorf("pod directories: got %q, want %q", m.dirs(), want)
		}
	})
}

// TestUnknownUIDs checks that UIDs are unknown only if no source, no sandbox and no worker has a pod with
// the UID, and only after every source was read and the runtime was observed.
func TestUnknownUIDs(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.makeForeign("other")
		p := pod(t, "web", `containers: [{name: app, image: "app:1"}]`)
		m.start()
		all := []types.UID{p.UID, "none", "foreign-other"}
		if unknown, err := m.current().router.UnknownUIDs(t.Context(), all); err == nil {
			t.Errorf("before the sources were read: got unknown UIDs %q, want an error", unknown)
		}
		expect := func(name string, want ...types.UID) {
			t.Helper()
			m.settle()
			if unknown, err := m.current().router.UnknownUIDs(t.Context(), all); err != nil || !slices.Equal(unknown, want) {
				t.Errorf("%s: got unknown UIDs %q and error %v, want %q", name, unknown, err, want)
			}
		}
		m.setPods(p)
		expect("desired pod", "none")
		at := filepath.Join(m.root, "pods", string(p.UID), "volumes/kubernetes.io~nfs/v")
		if err := os.MkdirAll(at, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		m.setPods()
		m.settle()
		m.wantState("other 0 ready", "other/app 0 running")
		expect("removed pod with a mounted volume", "none")
		if err := unix.Unmount(at, 0); err != nil {
			t.Fatal(err)
		}
		m.advance(10 * time.Minute) // until podd has tried again to remove the directory
		expect("removed pod", p.UID, "none")
	})
}

// newerJournal is a journal in a format that this podd cannot read.
const newerJournal = `{"version":999}`

// makeUnreadable replaces the journal of p with newerJournal.
func (m *machine) makeUnreadable(p *manifest.Pod) {
	m.t.Helper()
	if err := os.WriteFile(m.journal(p), []byte(newerJournal), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// runUnreadable starts a job, stops podd while the job runs, and makes its journal
// unreadable.
func (m *machine) runUnreadable() *manifest.Pod {
	p := pod(m.t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 60; exit 0"]}]`)
	m.start()
	m.setPods(p)
	m.settle()
	m.kill()
	m.makeUnreadable(p)
	return p
}

// TestUnreadableJournalInUse checks that a pod with an unreadable journal keeps running. The
// journal is reported until podd writes a new journal, and podd keeps the old journal.
func TestUnreadableJournalInUse(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := m.runUnreadable()
		m.ForgetCalls()
		m.start()
		all := m.nodeProblems()
		if len(all) != 1 || !strings.Contains(all[0], m.journal(p)) || !strings.Contains(all[0], "version 999") {
			t.Errorf("problems: got %q, want one about version 999 of the journal", all)
		}
		m.wantCalls()
		m.advance(2 * time.Minute)
		m.wantState("job 0 dead", "job/app 0 exited 0")
		if kept, err := os.ReadFile(m.journal(p) + ".unreadable"); err != nil || string(kept) != newerJournal {
			t.Errorf("unreadable journal under its second name: got %q (error %v), want its content unchanged", kept, err)
		}
		if all := m.nodeProblems(); len(all) > 0 {
			t.Errorf("problems after the new journal: got %q, want none", all)
		}
		m.restart()
		m.wantState("job 0 dead", "job/app 0 exited 0")
	})
}

// TestUnreadableJournal_FullDisk checks that an unreadable journal is kept and reported until its
// replacement is written, even if podd is restarted.
func TestUnreadableJournal_FullDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := m.runUnreadable()
		m.blockJournal(p)
		for _, life := range []string{"first", "second"} {
			m.start()
			m.advance(2 * time.Minute)
			if all := m.nodeProblems(); len(all) != 1 || !strings.Contains(all[0], "version 999") {
				t.Errorf("problems of the %s podd: got %q, want one about version 999", life, all)
			}
			if kept, err := os.ReadFile(m.journal(p)); err != nil || string(kept) != newerJournal {
				t.Errorf("journal after the %s podd: got %q (error %v), want its content unchanged", life, kept, err)
			}
			m.kill()
		}
		m.unblockJournal(p)
		m.start()
		m.advance(2 * time.Minute)
		if all := m.nodeProblems(); len(all) > 0 {
			t.Errorf("problems after the new journal: got %q, want none", all)
		}
		if kept, err := os.ReadFile(m.journal(p) + ".unreadable"); err != nil || string(kept) != newerJournal {
			t.Errorf("unreadable journal under its second name: got %q (error %v), want its content unchanged", kept, err)
		}
	})
}

// TestUnreadableJournal_Finished checks that a pod that must not run twice, and has only an
// unreadable journal left, waits until a user repairs or removes the journal.
func TestUnreadableJournal_Finished(t *testing.T) {
	for name, test := range map[string]struct {
		policy  string
		waits   bool
		resolve func(journal string, was []byte) error
		want    []string
	}{
		"never, repaired":     {"Never", true, func(journal string, was []byte) error { return os.WriteFile(journal, was, 0o600) }, nil},
		"on failure, removed": {"OnFailure", true, func(journal string, _ []byte) error { return os.Remove(journal) }, []string{"job 0 ready", "job/app 1 running"}},
		"always":              {"Always", false, nil, []string{"job 0 ready", "job/app 1 running"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				p := pod(t, "job", "restartPolicy: "+test.policy+`
containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
				m.start()
				m.setPods(p)
				m.settle()
				if test.waits {
					m.ExitContainer("default/job/app", 0)
					m.settle()
				}
				m.kill()
				m.loseRecords(t)
				was, err := os.ReadFile(m.journal(p))
				if err != nil {
					t.Fatal(err)
				}
				m.makeUnreadable(p)
				m.ForgetCalls()
				m.start()
				m.advance(5 * time.Minute)
				if test.waits {
					m.wantCalls()
					d := m.report("job").Decision
					if !d.NeedsUser || !strings.Contains(d.Why, m.journal(p)) || !strings.Contains(d.Why, "version 999") || !strings.Contains(d.Why, "remove it") {
						t.Errorf("decision: got %s, want a problem that names the journal, its version and the remedy", d)
					}
					if all := m.nodeProblems(); len(all) != 1 {
						t.Errorf("problems: got %q, want one", all)
					}
					if kept, err := os.ReadFile(m.journal(p)); err != nil || string(kept) != newerJournal {
						t.Errorf("journal: got %q (error %v), want its content unchanged", kept, err)
					}
					if err := test.resolve(m.journal(p), was); err != nil {
						t.Fatal(err)
					}
					m.advance(3 * time.Minute)
				}
				m.wantState(test.want...)
				if all := m.nodeProblems(); len(all) > 0 {
					t.Errorf("problems in the end: got %q, want none", all)
				}
				if phase := m.report("job").Pod.Status.Phase; (phase == v1.PodSucceeded) != (len(test.want) == 0) {
					t.Errorf("phase in the end: got %s, want Succeeded only if no calls are expected; expected calls: %q\n%s", phase, test.want, m.state())
				}
			})
		})
	}
}
