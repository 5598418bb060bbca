//go:build e2e

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// createOrphan creates the directory of a pod that does not exist, with a file in a volume. A kubelet may
// have left such a directory behind.
func (d *daemon) createOrphan(uid string) (dir, data string) {
	d.t.Helper()
	dir = filepath.Join(d.root(), "pods", uid)
	data = filepath.Join(dir, "volumes/kubernetes.io~empty-dir/cache/data")
	if err := os.MkdirAll(filepath.Dir(data), 0o750); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(data, make([]byte, 1<<20), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return dir, data
}

// wantFile fails the test unless a file exists or, if wantExists is false, does not exist.
func (d *daemon) wantFile(path string, wantExists bool) {
	d.t.Helper()
	if _, err := os.Lstat(path); wantExists && err != nil || !wantExists && !errors.Is(err, fs.ErrNotExist) {
		d.t.Errorf("file %s exists: got %t (error %v), want %t", path, err == nil, err, wantExists)
	}
}

// untilRemoved waits until a file does not exist.
func (d *daemon) untilRemoved(path string) {
	d.t.Helper()
	d.eventually(path+" is removed", func() error {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return errors.New("the file still exists")
		}
		return nil
	})
}

// TestOrphanedDirectories starts podd with a root directory that contains pod directories of a kubelet.
// Later, podd's journals are damaged or cannot be read. podd must keep directories that may contain data
// until a user removes them with podd orphans rm.
func TestOrphanedDirectories(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	_, kubelets := d.createOrphan("kubelets")
	empty := filepath.Join(d.root(), "pods/empty")
	if err := os.MkdirAll(filepath.Join(empty, "volumes/kubernetes.io~empty-dir/v"), 0o750); err != nil {
		t.Fatal(err)
	}
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.start()
	d.untilApplied("web")
	d.untilProblem("pod directories that have no journal", "kubelets", "podd orphans")
	d.wantFile(kubelets, true)
	d.untilRemoved(empty)
	was := d.container("web", "main")

	d.kill()
	brokenDir, broken := d.createOrphan("broken")
	unreadableDir, unreadable := d.createOrphan("unreadable")
	for _, path := range []string{filepath.Join(brokenDir, "journal.json"), filepath.Join(unreadableDir, "journal.json")} {
		if err := os.WriteFile(path, []byte(`{"uid": "x`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Reading this journal must fail with EIO. Therefore /proc/self/mem is mounted on it, in which
	// nothing is mapped at address 0.
	at := filepath.Join(unreadableDir, "journal.json")
	if err := unix.Mount("/proc/self/mem", at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	journals, err := filepath.Glob(filepath.Join(d.root(), "pods/*/journal.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range journals {
		if path != at {
			if err := os.WriteFile(path, []byte(`{"version": 999}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.start()
	d.untilApplied("web")
	d.untilProblem(filepath.Join(brokenDir, "journal.json"), "version 999", "podd orphans rm broken")
	d.untilProblem(at, "input/output error", "podd orphans rm unreadable")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container of pod web after its journal was damaged: got %+v, want %+v", now, was)
	}
	for _, path := range []string{kubelets, broken, unreadable} {
		d.wantFile(path, true)
	}
	out, _ := d.verb("orphans")
	for _, want := range []string{"kubelets", "broken", "unreadable", "Ki"} {
		if !strings.Contains(out, want) {
			t.Errorf("podd orphans: got %q, want %s in it", out, want)
		}
	}

	if _, stderr := d.verb("orphans", "rm", "kubelets"); !strings.Contains(stderr, "kubelets removed") {
		t.Errorf("podd orphans rm: got %q, want %q in it", stderr, "kubelets removed")
	}
	d.wantFile(kubelets, false)
	d.wantFile(broken, true)
	if _, stderr, code := d.outcome(nil, "orphans", "rm", "unreadable"); code == 0 || !strings.Contains(stderr, at) {
		t.Errorf("podd orphans rm of a directory with a mount: got exit code %d and stderr %q, want an exit code other than 0 and %q in stderr", code, stderr, at)
	}
	d.wantFile(unreadable, true)
	d.unmount(at)
	d.verb("orphans", "rm", "--all")
	d.wantFile(brokenDir, false)
	d.untilRemoved(unreadableDir) // possible now, because the directory contains no mount any more
	if now := d.container("web", "main"); now != was {
		t.Errorf("container of pod web after podd orphans rm: got %+v, want %+v", now, was)
	}
}
