//go:build e2e

package privatehost

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPlace checks that two processes reserve different places, and that the files and the cgroup of a
// killed process are removed before the next process reserves its place.
func TestPlace(t *testing.T) {
	first, second := reserve(t), reserve(t)
	if first.dir == second.dir || first.cgroup == second.cgroup {
		t.Errorf("places of two processes: got %+v and %+v, want different directories and cgroups", first, second)
	}
	mounts, err := cgroupMounts()
	if err != nil {
		t.Fatal(err)
	}
	file, cgroup := filepath.Join(first.dir, "file"), filepath.Join(mounts[0].Mountpoint, first.cgroup)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(cgroup, "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := first.lock.Close(); err != nil { // as if the process was killed
		t.Fatal(err)
	}
	third := reserve(t)
	if third.dir != first.dir {
		t.Errorf("directory of the third process: got %s, want %s, because the first process was killed", third.dir, first.dir)
	}
	for _, path := range []string{file, cgroup} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s of the killed process: got error %v, want that it does not exist", path, err)
		}
	}
	for _, p := range []place{second, third} {
		if err := p.release(); err != nil {
			t.Errorf("releasing %s: %v", p.dir, err)
		}
		if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
			t.Errorf("directory %s after its release: got error %v, want that it does not exist", p.dir, err)
		}
	}
}

func reserve(t *testing.T) place {
	t.Helper()
	p, err := reservePlace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(p.lock.Name()) }) // other tests expect that /run is empty
	return p
}
