package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSandboxArg(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want bool
	}{
		"shim of the sandbox": {[]string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "abc", "-address", "/x"}, true},
		"another sandbox":     {[]string{"/usr/bin/containerd-shim-runc-v2", "-id", "abcd"}, false},
		"another program":     {[]string{"/bin/sh", "-id", "abc"}, false},
		"no value":            {[]string{"containerd-shim", "-id"}, false},
		"no arguments":        {[]string{""}, false},
	} {
		if got := sandboxArg(test.args) == "abc"; got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestKill checks that Kill kills the shim of a sandbox and no other shim. The shims are shells with the name
// of a shim.
func TestKill(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "containerd-shim-runc-v2")
	if err := os.Symlink(shell, binary); err != nil {
		t.Fatal(err)
	}
	const id = "the-sandbox-of-this-test"
	start := func(id string) *exec.Cmd {
		cmd := exec.Command(binary, "-c", "echo; read line", "-id", id)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// When Start returns, the kernel may not have set the command line yet.
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	shim, other := start(id), start(id+"-not")
	defer func() { _ = other.Wait() }()
	defer func() { _ = other.Process.Kill() }()
	if found, err := Kill(id); !found || err != nil {
		t.Fatalf("Kill: got found %t, error %v; want true, nil", found, err)
	}
	if err := shim.Wait(); err == nil {
		t.Error("shim after Kill: got exit code 0, want it killed")
	}
	if found, err := Kill(id); found || err != nil {
		t.Errorf("second Kill: got found %t, error %v; want false, nil", found, err)
	}
	if shimSandbox(filepath.Join("/proc", strconv.Itoa(other.Process.Pid))) != id+"-not" {
		t.Error("shim of another sandbox after Kill: got it killed, want it to run")
	}
}

// TestKillOrphan checks that KillOrphan kills a process and, if its parent is a shim, the parent. It must kill
// neither if the process is not the expected one.
func TestKillOrphan(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		program      string
		isExpected   bool
		parentKilled bool // whether the parent must be killed, too
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
			if err := KillOrphan(pid, func() bool { return test.isExpected }); err != nil {
				t.Error(err)
			}
			in.Close() // lets the parent exit if it was not killed
			err = parent.Wait()
			if killed := err != nil; killed != test.parentKilled {
				t.Errorf("parent killed: got %t (result of Wait: %v), want %t", killed, err, test.parentKilled)
			}
			isRunning := func() bool { return child.Signal(syscall.Signal(0)) == nil && !isZombie(pid) }
			for deadline := time.Now().Add(5 * time.Minute); test.isExpected && isRunning() && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if isRunning() == test.isExpected {
				t.Errorf("process is still running: got %t, want %t", isRunning(), !test.isExpected)
			}
		})
	}
}

// isZombie reports whether a process has exited and its parent has not waited for it.
func isZombie(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(text), ") Z ")
}
