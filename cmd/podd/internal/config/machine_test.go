package config

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestSwapOn(t *testing.T) {
	dir := t.TempDir()
	title := "Filename\tType\tSize\tUsed\tPriority\n"
	for text, want := range map[string]bool{"": false, title: false, title + "\n": false, title + "/dev/sda2 partition 1 0 -2\n": true} {
		if got := swapOn(write(t, dir, "swaps", text)); got != want {
			t.Errorf("swapOn(%q) = %v, want %v", text, got, want)
		}
	}
	if swapOn(filepath.Join(dir, "none")) {
		t.Error("swapOn without the file = true")
	}
}

// A directory that decides which runtime root obeys must be root's alone.
func TestOnlyOurs(t *testing.T) {
	dir := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"own":      func(p string) error { return os.Mkdir(p, 0o755) },
		"open":     func(p string) error { return os.Mkdir(p, 0o700) },
		"link":     func(p string) error { return os.Symlink(dir, p) },
		"file":     func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"missing":  func(string) error { return nil },
		"stranger": func(p string) error { return os.Mkdir(p, 0o755) },
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(dir, "stranger"), 1234, 1234); err != nil {
			t.Fatal(err)
		}
	} else if err := os.Chmod(filepath.Join(dir, "stranger"), 0o770); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "open", "link", "file", "missing", "stranger"} {
		if got, want := onlyOurs(filepath.Join(dir, name)), name == "own"; got != want {
			t.Errorf("onlyOurs(%s) = %v, want %v", name, got, want)
		}
	}
}

func TestCheckoutRuntime(t *testing.T) {
	dir := t.TempDir()
	m := machine
	m.Checkout = dir
	cfg, _, err := Load(Flags{}, m)
	if err != nil || cfg.RuntimeEndpoint != "" {
		t.Errorf("endpoint without a socket = %q, %v; want none", cfg.RuntimeEndpoint, err)
	}
	socket := filepath.Join(dir, "containerd.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg, _, err = Load(Flags{}, m)
	if err != nil || cfg.RuntimeEndpoint != "unix://"+socket {
		t.Errorf("endpoint = %q, %v; want %s", cfg.RuntimeEndpoint, err, socket)
	}
	cfg, _, err = Load(parse(t, "--container-runtime-endpoint=/other.sock"), m)
	if err != nil || cfg.RuntimeEndpoint != "unix:///other.sock" {
		t.Errorf("endpoint = %q, %v; want the flag's", cfg.RuntimeEndpoint, err)
	}
}

func TestThisMachine(t *testing.T) {
	m, err := ThisMachine()
	if err != nil || m.Hostname == "" || m.AsKubelet() {
		t.Errorf("ThisMachine() = %+v, %v", m, err)
	}
}

func TestSwapLimits(t *testing.T) {
	for name, test := range map[string]struct {
		file, self string
		want       bool
	}{
		"v1":                {"memory/memory.memsw.limit_in_bytes", "5:memory:/\n", true},
		"v1, not accounted": {"memory/memory.limit_in_bytes", "5:memory:/\n", false},
		"v2":                {"system.slice/podd.service/memory.swap.max", "0::/system.slice/podd.service\n", true},
		"v2, no controller": {"system.slice/podd.service/memory.max", "0::/system.slice/podd.service\n", false},
		"v2, at the top":    {"memory.stat", "0::/\n", false},
	} {
		dir := t.TempDir()
		file, self := filepath.Join(dir, test.file), filepath.Join(dir, "self")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600), os.WriteFile(self, []byte(test.self), 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := swapLimits(dir, self); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
