package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestIDIn(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want bool
	}{
		"its shim":        {[]string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "abc", "-address", "/x"}, true},
		"another sandbox": {[]string{"/usr/bin/containerd-shim-runc-v2", "-id", "abcd"}, false},
		"another program": {[]string{"/bin/sh", "-id", "abc"}, false},
		"no value":        {[]string{"containerd-shim", "-id"}, false},
		"no arguments":    {[]string{""}, false},
	} {
		if got := idIn(test.args) == "abc"; got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestEnd uses a shell with the name of a shim.
func TestEnd(t *testing.T) {
	sleep, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "containerd-shim-runc-v2")
	if err := os.Symlink(sleep, binary); err != nil {
		t.Fatal(err)
	}
	const id = "the-sandbox-of-this-test"
	start := func(id string) *exec.Cmd {
		cmd := exec.Command(binary, "-c", "read line", "-id", id)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	its, other := start(id), start(id+"-not")
	defer func() { _ = other.Wait() }()
	defer func() { _ = other.Process.Kill() }()
	if found, err := End(id); !found || err != nil {
		t.Fatalf("got %v, %v; want the shim to be found", found, err)
	}
	if err := its.Wait(); err == nil {
		t.Error("the shim was not killed")
	}
	if found, err := End(id); found || err != nil {
		t.Errorf("again: got %v, %v; want no shim", found, err)
	}
	if shimID(filepath.Join("/proc", strconv.Itoa(other.Process.Pid))) != id+"-not" {
		t.Error("the shim of another sandbox was killed")
	}
}

// TestEndOrphan checks that a process is killed together with its parent only if that is a
// shim, and that it is not killed if it is not the expected process.
func TestEndOrphan(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		program string
		still   bool
		parent  bool // is killed, too
	}{
		"child of a shim":          {"containerd-shim-runc-v2", true, true},
		"child of another program": {"bash", true, false},
		"not the expected process": {"containerd-shim-runc-v2", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), test.program)
			if err := os.Symlink(shell, binary); err != nil {
				t.Fatal(err)
			}
			parent := exec.Command(binary, "-c", "sleep 1000 & echo $!; read line; true", "-id", "the-sandbox")
			in, err := parent.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Fscan(out, &pid); err != nil {
				t.Fatal(err)
			}
			child, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			defer child.Kill()
			if err := EndOrphan(pid, func() bool { return test.still }); err != nil {
				t.Error(err)
			}
			in.Close() // ends a parent that was not killed
			err = parent.Wait()
			if killed := err != nil; killed != test.parent {
				t.Errorf("the parent exited with %v, want killed: %v", err, test.parent)
			}
			runs := func() bool { return child.Signal(syscall.Signal(0)) == nil && !zombie(pid) }
			for deadline := time.Now().Add(10 * time.Second); test.still && runs() && time.Now().Before(deadline); {
				goruntime.Gosched()
			}
			if runs() == test.still {
				t.Errorf("the process runs: got %v, want %v", runs(), !test.still)
			}
		})
	}
}

// zombie reports whether a process has exited and was not waited for.
func zombie(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(text), ") Z ")
}
