//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podd/runtime/runtimetest/child"
)

// A process is a program started by a test. The kernel kills it when the test binary exits.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed after the process has exited
}

// launch starts cmd, and a goroutine that waits for the exit of the process.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	if err := child.Start(cmd); err != nil {
		close(p.ended)
		return p, err
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the error is ignored, because the test may have killed the process
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends sig and waits until the process has exited.
func (p *process) signal(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // the error is ignored, because the process may have exited
	<-p.ended
}

// running reports whether the process has not exited yet.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// openFiles returns the targets of the file descriptors of a process, sorted.
func openFiles(pid int) ([]string, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	var targets []string
	for _, e := range entries {
		// Ignore a descriptor that the process has closed since ReadDir.
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			targets = append(targets, target)
		}
	}
	slices.Sort(targets)
	return targets, err
}

// residentKB returns the anonymous resident memory of a process in KiB.
func residentKB(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			return strconv.Atoi(strings.Fields(rest)[0])
		}
	}
	return 0, fmt.Errorf("/proc/%d/status: got no line RssAnon, want one", pid)
}

// processorTime returns the processor time that a process has used so far.
func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The format is "pid (name) state …". The name may contain any character, even ")". utime and stime
	// are the 12th and the 13th fields after the name, in hundredths of a second.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	// The format is "pid (name) state …". The name may contain any character, even ")".
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
