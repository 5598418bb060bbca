package oomscore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newProc returns a directory with the files of this process and of process 42.
func newProc(t *testing.T, own, other string) string {
	t.Helper()
	proc := t.TempDir()
	for process, value := range map[string]string{"self": own, "42": other} {
		if err := os.Mkdir(filepath.Join(proc, process), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, process, "oom_score_adj"), []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func readValue(t *testing.T, proc, process string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(proc, process, "oom_score_adj"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestSet changes the value of this process to higher and lower values. It needs no capability, because all
// values are at least the one with which the process was started.
func TestSet(t *testing.T) {
	own, err := read(procDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Set(own); err != nil {
			t.Error(err)
		}
	})
	for _, value := range []int{900, 1000, 950} {
		if err := Set(value); err != nil {
			t.Fatal(err)
		}
		if got, err := read(procDir); err != nil || got != value {
			t.Errorf("oom_score_adj after Set: got %d (error %v), want %d", got, err, value)
		}
	}
	if err := Set(1001); err == nil {
		t.Error("Set(1001): got no error, want one")
	}
}

// TestStart checks that a started program keeps a positive value that it inherits.
func TestStart(t *testing.T) {
	own, err := read(procDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Set(800); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Set(own) })
	cmd := exec.Command("cat", "/proc/self/oom_score_adj")
	var out strings.Builder
	cmd.Stdout = &out
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || strings.TrimSpace(out.String()) != "800" {
		t.Errorf("oom_score_adj of the started program: got %q (error %v), want 800", out.String(), err)
	}
	if err := Start(exec.Command("/does/not/exist")); err == nil {
		t.Error("Start of a missing program: got no error, want one")
	}
}

// TestResetChild checks that a program does not keep a negative value that it has inherited.
func TestResetChild(t *testing.T) {
	for own, want := range map[string]string{"-999": "0", "-1": "0", "0": "0", "500": "500"} {
		proc := newProc(t, own, own)
		if err := resetChild(proc, 42); err != nil {
			t.Error(err)
		}
		if got := readValue(t, proc, "42"); got != want {
			t.Errorf("own value %s: value of the program: got %s, want %s", own, got, want)
		}
		if got := readValue(t, proc, "self"); got != own {
			t.Errorf("own value after resetChild: got %s, want %s", got, own)
		}
	}
	if err := resetChild(newProc(t, "-1", "-1"), 43); !os.IsNotExist(err) {
		t.Errorf("process that does not exist: got error %v, want not exist", err)
	}
}
