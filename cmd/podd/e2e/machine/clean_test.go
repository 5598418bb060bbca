//go:build vm

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

// untilClean waits until these pods are ready and the machine has nothing of any
// other. One that has finished has no more than its directories.
func untilClean(t testing.TB, names ...string) {
	t.Helper()
	running := 0
	for _, p := range untilReady(t, names...) {
		if p.Pod.Status.Phase == v1.PodRunning {
			running++
		}
	}
	eventually(t, fmt.Sprintf("only %v are left", names), func() error {
		now, err := look(t.Context())
		if err != nil {
			return err
		}
		sandboxes := 0
		for name := range now.runs {
			if !strings.Contains(name, "/") {
				sandboxes++
			}
		}
		for _, row := range []struct {
			what  string
			want  int
			count func() (int, error)
		}{
			{"sandboxes that run", running, func() (int, error) { return sandboxes, nil }},
			{"addresses", running, func() (int, error) { return entries("/var/lib/cni/networks/pods", "10.") }},
			{"cgroups of pods", running, slices},
			{"slices in systemd", running, units},
			{"directories of pods", len(names), func() (int, error) { return entries("/var/lib/podd/pods", "") }},
			{"directories of logs", len(names), func() (int, error) { return entries("/var/log/pods", "") }},
		} {
			if n, err := row.count(); err != nil || n != row.want {
				return fmt.Errorf("%d %s, want %d (%v)", n, row.what, row.want, err)
			}
		}
		if len(names) == 0 && len(now.dead) > 0 {
			return fmt.Errorf("%v are left dead", now.dead)
		}
		return nil
	})
}

func entries(dir, prefix string) (n int, err error) {
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

// isPod tells whether a slice is a pod's and not a class's.
func isPod(slice string) bool {
	return strings.HasPrefix(slice, "kubepods") && strings.Contains(slice, "-pod") && strings.HasSuffix(slice, ".slice")
}

// slices counts the cgroups of pods, wherever they are.
func slices() (n int, err error) {
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() && isPod(d.Name()) {
			n++
		}
		return err
	})
	return n, err
}

// units counts the pods' slices that systemd has in memory, dead ones too.
func units() (n int, err error) {
	out, err := system("systemctl list-units --all --plain --no-legend --full kubepods*")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 && isPod(fields[0]) {
			n++
		}
	}
	return n, err
}
