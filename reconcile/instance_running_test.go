package reconcile

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/child"
)

// TestInstancesOf checks that a process runs an instance only if it holds the lock of the file with
// the ID. A process that has only opened the file, for example to read the ID, does not run it.
func TestInstancesOf(t *testing.T) {
	const id = "0123456789abcdef"
	open := func(text string) *os.File {
		path := filepath.Join(t.TempDir(), lockFileName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	held := open("fedcba9876543210\n")
	open(id + "\n")
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ids := instancesOf("/proc/self")
	if slices.Contains(ids, id) {
		t.Errorf("process that opened the file with the ID %s and does not hold the lock: instancesOf: got %q, want them without this ID", id, ids)
	}
	if !slices.Contains(ids, "fedcba9876543210") {
		t.Errorf("process that holds the lock of the file with the ID fedcba9876543210: instancesOf: got %q, want them with this ID", ids)
	}
}

// TestInstancesOf_ForeignLockFile checks that the empty lock file of another program is not opened,
// because a program with --exit-on-lock-contention would exit.
func TestInstancesOf_ForeignLockFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), lockFileName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, f.Name(), unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	if ids := instancesOf("/proc/self"); len(ids) > 0 {
		t.Errorf("process with an empty lock file: instancesOf: got %q, want none", ids)
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); err != unix.EAGAIN {
		t.Errorf("events about opens of the file: got %d bytes (error %v), want none", n, err)
	}
}

// TestRunningInstance_ManyLocks checks that a process is found while others take and release
// locks all the time.
func TestRunningInstance_ManyLocks(t *testing.T) {
	const id = "0123456789abcdef"
	path := filepath.Join(t.TempDir(), lockFileName)
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("flock", path, "sleep", "1000")
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := child.Start(holder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-holder.Process.Pid, unix.SIGKILL)
		_ = holder.Wait()
	})
	stop := make(chan struct{})
	var lockers sync.WaitGroup
	for range 4 {
		dir := t.TempDir()
		lockers.Go(func() { takeLocks(dir, stop) })
	}
	t.Cleanup(lockers.Wait)
	t.Cleanup(func() { close(stop) })
	pid := 0
	for deadline := time.Now().Add(5 * time.Minute); pid == 0; {
		if time.Now().After(deadline) {
			t.Fatal("process with the locked file: got none before the deadline, want one")
		}
		var err error
		if pid, err = FindInstanceProcess(id); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3000 {
		if ids := instancesOf(filepath.Join("/proc", strconv.Itoa(pid))); !slices.Contains(ids, id) {
			t.Fatalf("instances of the process with the locked file in call %d: got %q, want %s", i, ids, id)
		}
	}
}

// takeLocks takes and releases 200 locks in a loop until stop is closed.
func takeLocks(dir string, stop <-chan struct{}) {
	for {
		var files []*os.File
		for i := range 200 {
			f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
			if err == nil {
				_ = unix.Flock(int(f.Fd()), unix.LOCK_EX)
				files = append(files, f)
			}
		}
		for _, f := range files {
			f.Close()
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}
