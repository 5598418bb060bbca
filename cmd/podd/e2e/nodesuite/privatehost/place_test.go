//go:build e2e

package privatehost

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPlace checks that two processes reserve different places, and that the files and the cgroup of a
// killed process are removed when the next process reserves a place, even if it reserves another place.
// The first place has a directory but no lock file, as after a reboot that has emptied only /run.
func TestPlace(t *testing.T) {
	if err := os.MkdirAll(filepath.Join(os.TempDir(), "podd-private-host-1", "disk"), 0o755); err != nil {
		t.Fatal(err)
	}
	first, second := reserve(t), reserve(t)
	if first.dir == second.dir || first.cgroup == second.cgroup {
		t.Errorf("places of two processes: got %+v and %+v, want different directories and cgroups", first, second)
	}
	mounts, err := cgroupMounts()
	if err != nil {
		t.Fatal(err)
	}
	cgroup := filepath.Join(mounts[0].Mountpoint, second.cgroup)
	if err := os.MkdirAll(filepath.Join(cgroup, "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := second.lock.Close(); err != nil { // as if the process was killed
		t.Fatal(err)
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	third := reserve(t)
	if third.dir != first.dir {
		t.Errorf("directory of the third process: got %s, want %s, because the first process has released it", third.dir, first.dir)
	}
	if err := third.release(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{first.dir, second.dir, cgroup} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s at the end: got error %v, want that it does not exist", path, err)
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
