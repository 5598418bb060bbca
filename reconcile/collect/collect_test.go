package collect

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/reconcile/cgroup"
	"podd/reconcile/render"
	"podd/runtime/safepath"
)

var web = types.NamespacedName{Namespace: "default", Name: "web-node1"}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLogs returns Logs with the given files, which are paths below Dir.
func newLogs(t *testing.T, files ...string) Logs {
	t.Helper()
	l := Logs{Dir: filepath.Join(t.TempDir(), "pods"), LinkDir: filepath.Join(t.TempDir(), "containers")}
	must(t, os.MkdirAll(l.Dir, 0o755))
	for _, name := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(l.Dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(l.Dir, name), nil, 0o644))
	}
	return l
}

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestSweep(t *testing.T) {
	l := newLogs(t,
		"default_gone_u1/c/0.log", "default_live_u2/c/3.log", "default_foreign_u3/c/0.log",
		"default_u1/c/0.log", "a_b_c_u1/c/0.log", "__u1/c/0.log", "u1/c/0.log")
	must(t, os.MkdirAll(l.LinkDir, 0o755))
	for name, to := range map[string]string{
		"gone.log":      l.Dir + "/default_gone_u1/c/0.log",
		"gone-dead.log": l.Dir + "/default_gone_u1/c/7.log",
		"live.log":      l.Dir + "/default_live_u2/c/3.log",
		"live-old.log":  l.Dir + "/default_live_u2/c/1.log",     // superseded
		"live-turn.log": l.Dir + "/default_live_u2/other/0.log", // being rotated
		"foreign.log":   l.Dir + "/default_foreign_u3/c/9.log",
		"elsewhere.log": "/var/lib/docker/containers/default_gone_u1/c/0.log",
		"relative.log":  "default_gone_u1/c/0.log",
		"up.log":        l.Dir + "/../default_gone_u1/c/0.log",
		"gone.txt":      l.Dir + "/default_gone_u1/c/0.log",
		"deeper.log":    l.Dir + "/default_gone_u1/c/d/0.log",
	} {
		must(t, os.Symlink(to, filepath.Join(l.LinkDir, name)))
	}
	must(t, os.WriteFile(filepath.Join(l.LinkDir, "file.log"), nil, 0o644))
	for range 2 {
		must(t, l.sweep(t.Context(), sets.New[types.UID]("u1", "u2"), sets.New[types.UID]("u2", "u3")).join())
		want := []string{"__u1", "a_b_c_u1", "default_foreign_u3", "default_live_u2", "default_u1", "u1"}
		if diff := cmp.Diff(want, names(t, l.Dir)); diff != "" {
			t.Errorf("log directories (-want +got):\n%s", diff)
		}
		want = []string{"deeper.log", "elsewhere.log", "file.log", "foreign.log", "gone.txt", "live-turn.log", "live.log", "relative.log", "up.log"}
		if diff := cmp.Diff(want, names(t, l.LinkDir)); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
	}
	must(t, os.RemoveAll(l.Dir))
	must(t, l.removeShared(t.Context(), "u2"))
	if left := names(t, l.LinkDir); slices.Contains(left, "live.log") {
		t.Errorf("links to removed logs: got %q, want none", left)
	}
}

// TestRemove checks that the logs of several pods are removed, even if the removal of others fails, and
// that nothing is removed after the end of the context.
func TestRemove(t *testing.T) {
	l := newLogs(t, "default_a_u1/c/0.log", "default_b_u2/c/0.log", "default_c_u3/c/0.log")
	at := filepath.Join(l.Dir, "default_a_u1/c")
	must(t, unix.Mount(t.TempDir(), at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	uids := sets.New[types.UID]("u1", "u2")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Remove(ended, uids); !errors.Is(err, context.Canceled) || len(names(t, l.Dir)) != 3 {
		t.Errorf("after the end of the context: got error %v and log directories %q, want %v and all directories", err, names(t, l.Dir), context.Canceled)
	}
	if err := l.Remove(t.Context(), uids); !errors.Is(err, safepath.ErrMount) {
		t.Errorf("got error %v, want %v", err, safepath.ErrMount)
	}
	if diff := cmp.Diff([]string{"default_a_u1", "default_c_u3"}, names(t, l.Dir)); diff != "" {
		t.Errorf("remaining log directories (-want +got):\n%s", diff)
	}
}

func TestRemove_LinksAndMounts(t *testing.T) {
	l := newLogs(t, "default_web_u1/c/0.log", "default_web2_u1/c/0.log")
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	must(t, os.WriteFile(kept, nil, 0o644))
	must(t, os.Symlink(outside, filepath.Join(l.Dir, "default_web_u1/c/link")))
	must(t, os.Symlink(outside, filepath.Join(l.Dir, "default_link_u1")))
	at := filepath.Join(l.Dir, "default_web2_u1/c/mnt")
	must(t, os.Mkdir(at, 0o755))
	must(t, unix.Mount(outside, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	if err := l.removeShared(t.Context(), "u1"); !errors.Is(err, safepath.ErrMount) || !strings.Contains(err.Error(), at) {
		t.Errorf("remove: got error %v, want one that names the mount %s", err, at)
	}
	if diff := cmp.Diff([]string{"default_web2_u1"}, names(t, l.Dir)); diff != "" {
		t.Errorf("remaining log directories (-want +got):\n%s", diff)
	}
	must(t, unix.Unmount(at, 0))
	must(t, l.removeShared(t.Context(), "u1"))
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("file outside of the log directory: got error %v, want the file kept", err)
	}
}

func TestLink(t *testing.T) {
	l := newLogs(t)
	path := filepath.Join(l.Dir, "default_web-node1_u1/c/0.log")
	made, err := l.Link(path, web, "c", "abc")
	if made || err != nil || len(names(t, l.LinkDir)) > 0 {
		t.Fatalf("without a log: got made %v (error %v), want false and no error", made, err)
	}
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, nil, 0o644))
	link := filepath.Join(l.LinkDir, "web-node1_default_c-abc.log")
	for range 2 {
		made, err := l.Link(path, web, "c", "abc")
		if got, _ := os.Readlink(link); !made || err != nil || got != path {
			t.Fatalf("Link: got made %v (error %v) and a link to %q; want made true and a link to %q", made, err, got, path)
		}
	}
	must(t, os.Remove(link))
	must(t, os.WriteFile(link, []byte("not podd's"), 0o644))
	if made, err := l.Link(path, web, "c", "abc"); made || err == nil {
		t.Error("link over a file: got no error, want one")
	}
	if text, _ := os.ReadFile(link); string(text) != "not podd's" {
		t.Error("file in place of the link: got changed content, want it unchanged")
	}
	if made, err := (Logs{Dir: l.Dir}).Link(path, web, "c", "abc"); made || err != nil {
		t.Errorf("without a directory of links: got made %v (error %v), want false and no error", made, err)
	}
	for _, bad := range []string{"/etc/passwd", l.Dir, l.Dir + "/../x", "c/0.log", ""} {
		if made, err := l.Link(bad, web, "c", "abc"); made || err == nil {
			t.Errorf("Link to %q: got made %v (error %v), want an error", bad, made, err)
		}
	}
	must(t, os.Remove(path))
	must(t, os.Symlink("/etc/passwd", path))
	if made, err := l.Link(path, web, "c", "x"); made || !errors.Is(err, safepath.ErrNotRegular) {
		t.Errorf("a link in place of the log: got made %v (error %v), want false and an error", made, err)
	}
}

func TestLink_LongNames(t *testing.T) {
	pod := types.NamespacedName{Namespace: "default", Name: strings.Repeat("p", 253)}
	l := newLogs(t, "a/b/0.log", "a/b/1.log")
	for _, name := range []string{"0.log", "1.log"} { // both names are truncated to the same name
		path := filepath.Join(l.Dir, "a/b", name)
		made, err := l.Link(path, pod, "c", name)
		if !made || err != nil {
			t.Fatalf("%s: got made %v (error %v), want true and no error", name, made, err)
		}
		got := names(t, l.LinkDir)
		if len(got) != 1 || len(got[0]) != 255 || !strings.HasSuffix(got[0], ".log") {
			t.Errorf("links: got %q, want one with a name of 255 bytes and the suffix .log", got)
		}
		if to, _ := os.Readlink(filepath.Join(l.LinkDir, got[0])); to != path {
			t.Errorf("target of the link: got %q, want %q", to, path)
		}
	}
}

func TestLowestFreeAttempt(t *testing.T) {
	l := newLogs(t, "p/c/0.log", "p/c/2.log.20250102-150405.gz", "p/c/1.log", "p/c/99.txt", "p/c/4294967295.log", "p/d/x")
	must(t, os.Symlink("c", filepath.Join(l.Dir, "p/link")))
	for container, want := range map[string]uint32{"c": 3, "d": 0, "none": 0} {
		got, err := lowestFreeAttempt(filepath.Join(l.Dir, "p"), container)
		if got != want || err != nil {
			t.Errorf("container %q: got attempt %d (error %v), want %d", container, got, err, want)
		}
	}
	for _, bad := range []string{"", ".", "..", "../p/c", "/c", "link"} {
		if n, err := lowestFreeAttempt(filepath.Join(l.Dir, "p"), bad); err == nil {
			t.Errorf("container %q: got attempt %d, want an error", bad, n)
		}
	}
	if n, err := lowestFreeAttempt(filepath.Join(l.Dir, "none/p"), "c"); n != 0 || err != nil {
		t.Errorf("without any logs: got attempt %d (error %v), want 0", n, err)
	}
}

func FuzzNextAttempt(f *testing.F) {
	f.Add("0.log\n1.log.20250102-150405.gz")
	f.Add("4294967295.log\n-1.log")
	f.Fuzz(func(t *testing.T, text string) {
		files := strings.Split(text, "\n")
		next := nextAttempt(files)
		if next > maxAttempt+1 {
			t.Errorf("%q: got attempt %d, want no overflow", files, next)
		}
		if slices.Contains(files, "7.log") && next < 8 {
			t.Errorf("%q: got attempt %d, which has logs; want a free one", files, next)
		}
	})
}

// TestNextAttempt_Property checks that the next attempt is the lowest number above all attempt
// numbers of log files.
func TestNextAttempt_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []string
		want := uint32(0)
		for _, n := range rapid.SliceOf(rapid.Uint32Range(0, maxAttempt)).Draw(t, "attempts") {
			suffix := rapid.SampledFrom([]string{".log", ".log.20250102-150405", ".log.20250102-150405.gz", ".txt"}).Draw(t, "suffix")
			files = append(files, itoa(n)+suffix)
			if suffix != ".txt" {
				want = max(want, n+1)
			}
		}
		if got := nextAttempt(files); got != want {
			t.Fatalf("%q: got %d, want %d", files, got, want)
		}
	})
}

func TestLogsAndCgroups(t *testing.T) {
	l := LogsAndCgroups{CgroupRoot: "/podd-test-none"}
	l.Logs = newLogs(t, "default_web-node1_u1/c/0.log", "default_web-node1_u1/c/1.log", "default_web-node1_u1/c/1.log.20250102-150405",
		"default_web-node1_u1/i/0.log", "default_web-node1_u1/unrelated/0.log")
	pod := &manifest.Pod{Key: web, UID: "u1", Object: &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "i"}},
		Containers:     []v1.Container{{Name: "c"}, {Name: "new"}},
	}}}
	next, err := l.NextAttempts(pod)
	must(t, err)
	if diff := cmp.Diff(map[string]uint32{"c": 2, "i": 1}, next); diff != "" {
		t.Errorf("next attempts (-want +got):\n%s", diff)
	}
	for attempt := range uint32(4) {
		path := filepath.Join(l.Logs.Dir, "default_web-node1_u1/c", itoa(attempt)+".log")
		must(t, os.WriteFile(path, nil, 0o644))
		must(t, l.HandleStart(pod, "c", "id"+itoa(attempt), attempt, attempt))
	}
	if diff := cmp.Diff([]string{"2.log", "3.log"}, names(t, l.Logs.Dir+"/default_web-node1_u1/c")); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"web-node1_default_c-id2.log", "web-node1_default_c-id3.log"}, names(t, l.Logs.LinkDir)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	// No containers have the attempt numbers 4 and 5.
	must(t, os.WriteFile(filepath.Join(l.Logs.Dir, "default_web-node1_u1/c/6.log"), nil, 0o644))
	must(t, l.HandleStart(pod, "c", "id6", 6, 6))
	if diff := cmp.Diff([]string{"3.log", "6.log"}, names(t, l.Logs.Dir+"/default_web-node1_u1/c")); diff != "" {
		t.Errorf("logs after attempt 6, which follows attempt 3 (-want +got):\n%s", diff)
	}
	for at := uint32(7); at < 10; at++ {
		must(t, os.WriteFile(filepath.Join(l.Logs.Dir, "default_web-node1_u1/c", itoa(at)+".log"), nil, 0o644))
		must(t, l.HandleStart(pod, "c", "id"+itoa(at), at, 6))
	}
	if diff := cmp.Diff([]string{"6.log", "7.log", "8.log", "9.log"}, names(t, l.Logs.Dir+"/default_web-node1_u1/c")); diff != "" {
		t.Errorf("logs of containers that are kept (-want +got):\n%s", diff)
	}
	for range 2 {
		must(t, l.Remove(t.Context(), web, "u1"))
		if left := append(names(t, l.Logs.Dir), names(t, l.Logs.LinkDir)...); len(left) > 0 {
			t.Errorf("remaining logs and links: got %q, want none", left)
		}
	}
}

func TestMakeLogs(t *testing.T) {
	l := LogsAndCgroups{Logs: Logs{Dir: filepath.Join(t.TempDir(), "log/pods")}}
	pod := &manifest.Pod{Key: web, UID: "u1"}
	old := unix.Umask(0o077) // the mode does not depend on the umask
	defer unix.Umask(old)
	for _, container := range []string{"", "c", "c"} {
		must(t, l.MakeLogDirs(pod, container))
	}
	for _, name := range []string{"default_web-node1_u1", "default_web-node1_u1/c"} {
		info, err := os.Stat(filepath.Join(l.Logs.Dir, name))
		must(t, err)
		if !info.IsDir() || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: got %s, want a directory with mode 0755", name, info.Mode())
		}
	}
	for _, bad := range []string{"..", ".", "../other", "a/b", "/etc"} {
		if err := l.MakeLogDirs(pod, bad); err == nil {
			t.Errorf("container %q: got no error, want one", bad)
		}
	}
	must(t, os.Symlink(t.TempDir(), filepath.Join(l.Logs.Dir, "default_web-node1_u1/link")))
	if err := l.MakeLogDirs(pod, "link"); !errors.Is(err, safepath.ErrLink) {
		t.Errorf("a link in place of the directory: got error %v, want %v", err, safepath.ErrLink)
	}
	must(t, os.Symlink(t.TempDir(), filepath.Join(l.Logs.Dir, "default_web-node1_u2")))
	if err := l.MakeLogDirs(&manifest.Pod{Key: web, UID: "u2"}, "c"); !errors.Is(err, safepath.ErrLink) {
		t.Errorf("a link in place of the pod's directory: got error %v, want %v", err, safepath.ErrLink)
	}
}

// TestRemoveCgroup_MeasuredOnce checks that OnCgroupRemoved is called once if the cgroup of a pod is
// removed twice, as for each finished pod, and that it is not called for a pod without a cgroup.
func TestRemoveCgroup_MeasuredOnce(t *testing.T) {
	root := "/podd-test-" + strconv.Itoa(os.Getpid()) + "-removecgroup"
	hierarchies, err := cgroup.Hierarchies()
	must(t, err)
	t.Cleanup(func() {
		for _, h := range hierarchies {
			for _, dir := range []string{"/kubepods/podu1", "/kubepods", ""} {
				if err := os.Remove(filepath.Join(h.Path, root+dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}
		}
	})
	must(t, cgroup.Create(render.Cgroup{Path: root + "/kubepods/podu1"}))
	calls := 0
	l := LogsAndCgroups{CgroupRoot: root, OnCgroupRemoved: func(time.Duration) { calls++ }}
	for range 2 {
		must(t, l.RemoveCgroup(t.Context(), "u1"))
	}
	if calls != 1 {
		t.Errorf("got %d calls of OnCgroupRemoved, want 1", calls)
	}
}
