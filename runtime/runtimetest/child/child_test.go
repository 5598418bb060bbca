package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// parentEnv is set in a process that starts a child and then waits until it is killed.
const parentEnv = "PODD_TEST_PARENT"

// Lock the main goroutine to the main thread, because the Go runtime never lets that thread exit.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sleep", "1000")
	if err := Start(cmd); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
	_ = cmd.Wait()
}

// TestStart_ThreadExits checks that the process survives the thread that called Start.
func TestStart_ThreadExits(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	started, thread := make(chan error), 0
	go func() {
		runtime.LockOSThread() // not unlocked, so that the thread exits
		thread = unix.Gettid()
		started <- Start(cmd)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	eventually(t, "exit of the thread that called Start", func() bool {
		return unix.Access("/proc/self/task/"+strconv.Itoa(thread), unix.F_OK) != nil
	})
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Errorf("process after its thread has exited: got %v, want it running", err)
	}
	err := cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != unix.SIGTERM {
		t.Errorf("exit of the process: got %v, want %s from the test", err, unix.SIGTERM)
	}
}

// TestStart_ProgramExits checks that the kernel kills the process after its program was killed.
func TestStart_ProgramExits(t *testing.T) {
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), parentEnv+"=1")
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(parent); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	eventually(t, "exit of the process", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ") // nothing may reap it in a container
	})
}

// TestCombinedOutput checks the output and the error of a process.
func TestCombinedOutput(t *testing.T) {
	out, err := CombinedOutput(exec.Command("sh", "-c", "echo out; echo err >&2; exit 3"))
	if end, ok := err.(*exec.ExitError); !ok || end.ExitCode() != 3 {
		t.Errorf("error: got %v, want exit status 3", err)
	}
	if string(out) != "out\nerr\n" {
		t.Errorf("output: got %q, want both lines", out)
	}
	if err := Run(exec.Command("/nonexistent")); err == nil {
		t.Error("program that does not exist: got no error, want one")
	}
}

// eventually waits up to five minutes until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: got false for 5m, want true", what)
		}
	}
}
