//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
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

// unknownPods are the leftovers of pods that do not exist.
type unknownPods struct {
	logs      string // log directory
	linked    string // file outside of logs to which a link in logs points
	mounted   string // log directory with a mount
	keptLogs  string // log directory of a pod that has a directory
	links     []string
	cgroup    string
	processes chan error // receives the result of the process in cgroup when it exits
}

// createUnknownPods creates leftovers of pods that do not exist. A process runs in the cgroup of such a pod.
func (d *daemon) createUnknownPods() (u unknownPods) {
	d.t.Helper()
	must := func(err error) {
		d.t.Helper()
		if err != nil {
			d.t.Fatal(err)
		}
	}
	logs := func(uid string) string {
		dir := filepath.Join(d.logDir(), "default_gone_"+uid)
		must(os.MkdirAll(filepath.Join(dir, "main"), 0o755))
		must(os.WriteFile(filepath.Join(dir, "main/0.log"), nil, 0o644))
		return dir
	}
	u.logs, u.mounted, u.keptLogs, u.linked = logs("gone"), logs("mounted"), logs("kept"), filepath.Join(d.dir, "linked")
	must(os.WriteFile(u.linked, nil, 0o600))
	must(os.Symlink(u.linked, filepath.Join(u.logs, "main/link")))
	must(unix.Mount(d.t.TempDir(), filepath.Join(u.mounted, "main"), "", unix.MS_BIND, ""))
	keptDir, _ := d.createOrphan("kept")
	linkDir := filepath.Join(d.dir, "containers")
	for name, to := range map[string]string{"gone.log": u.logs + "/main/0.log", "docker.log": filepath.Join(d.dir, "docker/json.log")} {
		u.links = append(u.links, filepath.Join(linkDir, name))
		must(os.Symlink(to, filepath.Join(linkDir, name)))
	}
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup2"))
	must(err)
	if len(mounts) == 0 {
		d.t.Fatal("got no hierarchy of cgroup v2, want one")
	}
	u.cgroup = filepath.Join(mounts[0].Mountpoint, d.parentCgroup(), "kubepods/burstable/podgone")
	must(os.MkdirAll(filepath.Join(u.cgroup, "container"), 0o755))
	process := exec.Command("sleep", "infinity")
	must(process.Start())
	u.processes = make(chan error, 1)
	go func() { u.processes <- process.Wait() }()
	must(os.WriteFile(filepath.Join(u.cgroup, "container/cgroup.procs"), []byte(strconv.Itoa(process.Process.Pid)), 0))
	d.t.Cleanup(func() {
		process.Process.Kill()
		d.eventually("the cgroup of the pod that does not exist is removed", func() error {
			for _, dir := range []string{u.cgroup + "/container", u.cgroup} {
				if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		})
		unix.Unmount(filepath.Join(u.mounted, "main"), unix.MNT_DETACH)
		for _, path := range append(u.links, u.logs, u.mounted, u.keptLogs, keptDir) {
			if err := os.RemoveAll(path); err != nil {
				d.t.Error(err)
			}
		}
	})
	return u
}

// TestUnknownPods checks that podd --adopt removes the logs and the cgroups of pods that do not exist, and
// kills their processes. It must not follow links or cross mounts, and it must keep the logs of a pod that
// has a directory. Without --adopt, podd removes nothing.
func TestUnknownPods(t *testing.T) {
	t.Parallel()
	plain, adopting := startDaemon(t), startDaemon(t, "--adopt")
	var pods [2]unknownPods
	for i, d := range []*daemon{plain, adopting} {
		d.apply(d.pod("web", shell("main", serve("web"))))
		d.untilApplied("web")
		pods[i] = d.createUnknownPods()
	}
	kept, u := pods[0], pods[1]
	was := adopting.container("web", "main")
	foreign := adopting.makeForeign("other")
	foreignLogs := filepath.Join(adopting.logDir(), "default_other_foreign-other")
	if err := os.MkdirAll(foreignLogs, 0o755); err != nil {
		t.Fatal(err)
	}

	for _, path := range append(u.links, u.logs, u.cgroup) {
		adopting.untilRemoved(path)
	}
	if err := <-u.processes; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("process in the cgroup of a pod that does not exist: got result %v, want it killed", err)
	}
	for _, path := range []string{u.linked, filepath.Join(u.mounted, "main"), u.keptLogs, foreignLogs} {
		adopting.wantFile(path, true)
	}
	adopting.eventually("podd has logged the removals", func() error {
		text, err := os.ReadFile(adopting.logFile())
		for _, want := range []string{"removed the logs of a pod that does not exist", "removed the cgroup of a pod that does not exist"} {
			if !strings.Contains(string(text), want) {
				err = errors.Join(err, fmt.Errorf("log of podd --adopt: got no message %q, want one", want))
			}
		}
		return err
	})
	if now := adopting.container("web", "main"); now != was {
		t.Errorf("container of pod web: got %+v, want %+v", now, was)
	}
	if logs, err := filepath.Glob(filepath.Join(adopting.logDir(), "default_"+adopting.podName("web")+"_*/main/0.log")); err != nil || len(logs) != 1 {
		t.Errorf("logs of pod web: got files %q and error %v, want one file", logs, err)
	}

	for _, path := range append(kept.links, kept.logs, kept.linked, kept.mounted, kept.keptLogs, kept.cgroup) {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("without --adopt: got %v, want the file kept", err)
		}
	}
	select {
	case err := <-kept.processes:
		t.Errorf("without --adopt: got a process that has exited with %v, want it running", err)
	default:
	}
	foreign.remove(t)
	if err := os.Remove(foreignLogs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
