package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestMoveProcesses moves a program from one cgroup to another.
func TestMoveProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test must run as root")
	}
	base := fmt.Sprintf("/podd-move-%d", os.Getpid())
	from, to := filepath.Join(base, "from"), filepath.Join(base, "to")
	t.Cleanup(func() { removeGroups(t, to, from, base) })
	program := exec.Command("sleep", "1000")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	m, err := newGroup(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(program.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := MoveProcesses(from, to); err != nil {
		t.Fatal(err)
	}
	if left, err := movablePids(from); err != nil || len(left) > 0 {
		t.Errorf("processes in %s: got %v (error %v), want none", from, left, err)
	}
	if moved, err := movablePids(to); err != nil || !slices.Equal(moved, []int{program.Process.Pid}) {
		t.Errorf("processes in %s: got %v (error %v), want only %d", to, moved, err, program.Process.Pid)
	}
}

// TestIsKernelThread checks that a process with a program is not a kernel thread. A process that
// does not exist counts as a kernel thread, so that podd does not move it.
func TestIsKernelThread(t *testing.T) {
	if isKernelThread(os.Getpid()) {
		t.Error("this process: got true, want false")
	}
	if !isKernelThread(1 << 30) {
		t.Error("a process that does not exist: got false, want true")
	}
}

// removeGroups removes cgroups without processes from all hierarchies.
func removeGroups(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		m, err := newGroup(name)
		if err == nil {
			err = m.Destroy()
		}
		if err != nil {
			t.Error(err)
		}
	}
}
