package reconcile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/child"
)

// TestRunsInstance checks that a process runs an instance only if it holds the lock of the file with
// the ID. A process that has only opened the file, for example to read the ID, does not run it.
func TestRunsInstance(t *testing.T) {
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
	if runsInstance("/proc/self", id) {
		t.Error("process that opened the file with the ID and does not hold the lock: runsInstance: got true, want false")
	}
	if !runsInstance("/proc/self", "fedcba9876543210") {
		t.Error("process that holds the lock of the file with the ID: runsInstance: got false, want true")
	}
}

// TestRunsInstance_ForeignLockFile checks that the empty lock file of another program is not opened,
// because a program with --exit-on-lock-contention would exit.
func TestRunsInstance_ForeignLockFile(t *testing.T) {
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
	if runsInstance("/proc/self", "0123456789abcdef") {
		t.Error("process with an empty lock file: runsInstance: got true, want false")
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
	found := func() bool {
		pid, err := FindInstanceProcess(id)
		if err != nil {
			t.Fatal(err)
		}
		return pid != 0
	}
	for deadline := time.Now().Add(time.Minute); !found(); {
		if time.Now().After(deadline) {
			t.Fatal("process with the locked file: got none before the deadline, want one")
		}
	}
	for i := range 300 {
		if !found() {
			t.Fatalf("process with the locked file in call %d: got none, want one", i)
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
