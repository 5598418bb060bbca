package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func TestIsShimOf(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want bool
	}{
		"its shim":       {[]string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "abc", "-address", "/x"}, true},
		"another's":      {[]string{"/usr/bin/containerd-shim-runc-v2", "-id", "abcd"}, false},
		"only named so":  {[]string{"/bin/sh", "-id", "abc"}, false},
		"no value":       {[]string{"containerd-shim", "-id"}, false},
		"nothing at all": {[]string{""}, false},
	} {
		if got := isShimOf(test.args, "abc"); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// A copy of sleep under a shim's name stands for one.
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
		t.Error("the shim ended by itself")
	}
	if found, err := End(id); found || err != nil {
		t.Errorf("got %v, %v; want no shim any more", found, err)
	}
	if !isShim(filepath.Join("/proc", strconv.Itoa(other.Process.Pid)), id+"-not") {
		t.Error("another sandbox's shim was ended")
	}
}
