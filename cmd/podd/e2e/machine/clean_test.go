//go:build e2e

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// untilClean waits until the named pods are ready and all other pods have been removed, with their
// sandboxes, addresses, cgroups and directories. Of a named pod that has finished, only the
// directories may be left.
func untilClean(t testing.TB, names ...string) {
	t.Helper()
	running := 0
	for _, p := range untilReady(t, names...) {
		if p.Pod.Status.Phase == v1.PodRunning {
			running++
		}
	}
	eventually(t, fmt.Sprintf("only the pods %v exist", names), func() error {
		now, err := getInventory(t.Context())
		if err != nil {
			return err
		}
		sandboxes := 0
		for name := range now.running {
			if !strings.Contains(name, "/") {
				sandboxes++
			}
		}
		for _, row := range []struct {
			what  string
			want  int
			count func() (int, error)
		}{
			{"running sandboxes", running, func() (int, error) { return sandboxes, nil }},
			{"addresses of pods", running, func() (int, error) { return countEntries("/var/lib/cni/networks/pods", "10.") }},
			{"cgroups of pods", running, countPodCgroups},
			{"slices in systemd", running, countPodSlices},
			{"directories of pods", len(names), func() (int, error) { return countEntries("/var/lib/podd/pods", "") }},
			{"log directories of pods", len(names), func() (int, error) { return countEntries("/var/log/pods", "") }},
		} {
			if n, err := row.count(); err != nil || n != row.want {
				return fmt.Errorf("counting %s: got %d (error %v), want %d", row.what, n, err, row.want)
			}
		}
		if len(names) == 0 && len(now.exited) > 0 {
			return fmt.Errorf("got the exited sandboxes and containers %v, want none", now.exited)
		}
		return nil
	})
}

func countEntries(dir, prefix string) (n int, err error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range all {
		if strings.HasPrefix(e.Name(), prefix) {
			n++
		}
	}
	return n, err
}

// isPodSlice reports whether a slice is that of a pod, and not that of a QoS class.
func isPodSlice(slice string) bool {
	return strings.HasPrefix(slice, "kubepods") && strings.Contains(slice, "-pod") && strings.HasSuffix(slice, ".slice")
}

// countPodCgroups counts the cgroups of pods in the whole hierarchy.
func countPodCgroups() (n int, err error) {
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() && isPodSlice(d.Name()) {
			n++
		}
		return err
	})
	return n, err
}

// countPodSlices counts the slices of pods that systemd has loaded, including inactive ones.
func countPodSlices() (n int, err error) {
	out, err := system("systemctl list-units --all --plain --no-legend --full kubepods*")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 && isPodSlice(fields[0]) {
			n++
		}
	}
	return n, err
}
