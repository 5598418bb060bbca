//go:build e2e

package privatehost

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
)

func TestMain(m *testing.M) {
	Main()
	if IsInside() {
		os.Exit(m.Run())
	}
	code, err := Run(func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "prepared"), nil, 0o600)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestFiles(t *testing.T) {
	if _, err := os.Stat(Root + "/prepared"); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"/run", "/var/lib/kubelet", "/var/log/pods", "/tmp"} {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			t.Errorf("directory %s on the private host: got %v, error %v; want no files", dir, entries, err)
		}
	}
	tmp, err := os.Stat("/tmp")
	if err != nil {
		t.Fatal(err)
	}
	if want := 0o777 | os.ModeDir | os.ModeSticky; tmp.Mode() != want {
		t.Errorf("mode of /tmp on the private host: got %v, want %v", tmp.Mode(), want)
	}
}

func TestCgroups(t *testing.T) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, ":/\n") && line != "0::/init\n" {
			t.Errorf("cgroup of the test: got %q, want / or, on a host with only cgroup v2, /init", line)
		}
	}
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil || len(mounts) == 0 {
		t.Fatalf("cgroup mounts: got %v, error %v; want at least one", mounts, err)
	}
	for _, m := range mounts {
		if m.Root != "/" {
			t.Errorf("root of the cgroup mount at %s: got %q, want /", m.Mountpoint, m.Root)
		}
		if err := os.Mkdir(filepath.Join(m.Mountpoint, "kubepods"), 0o755); err != nil {
			t.Error(err)
		}
	}
}

// TestOrphans checks that init reaps a process after its parent has exited.
func TestOrphans(t *testing.T) {
	out, err := exec.Command("sh", "-c", "sleep 0.1 >/dev/null & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	orphan := "/proc/" + strings.TrimSpace(string(out))
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(orphan); err != nil {
			return
		}
	}
	t.Errorf("orphaned process a minute after its exit: got %s, want it reaped", orphan)
}
