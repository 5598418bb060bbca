package config

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestHasSwap(t *testing.T) {
	dir := t.TempDir()
	title := "Filename\tType\tSize\tUsed\tPriority\n"
	for text, want := range map[string]bool{"": false, title: false, title + "\n": false, title + "/dev/sda2 partition 1 0 -2\n": true} {
		if got := hasSwap(writeFile(t, dir, "swaps", text)); got != want {
			t.Errorf("hasSwap(%q) = %v, want %v", text, got, want)
		}
	}
	if hasSwap(filepath.Join(dir, "none")) {
		t.Error("hasSwap of a missing file: got true, want false")
	}
}

// TestReadHostFacts_TracingURLs checks that each URL of a collector is read, so that a URL that is not
// valid does not hide a valid one.
func TestReadHostFacts_TracingURLs(t *testing.T) {
	for _, name := range tracingVariables {
		t.Setenv(name, "value of "+name)
	}
	got, err := ReadHostFacts()
	want := [...]string{"value of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "value of OTEL_EXPORTER_OTLP_ENDPOINT"}
	if err != nil || got.TracingURLs != want {
		t.Errorf("got URLs %q and error %v, want %q", got.TracingURLs, err, want)
	}
}

// TestIsPrivateDir checks that only a directory of this user to which no other user can write is private.
// In any other directory, podd could connect to the socket of another user.
func TestIsPrivateDir(t *testing.T) {
	dir := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"own":             func(p string) error { return os.Mkdir(p, 0o755) },
		"writable":        func(p string) error { return os.Mkdir(p, 0o700) },
		"link":            func(p string) error { return os.Symlink(dir, p) },
		"file":            func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"missing":         func(string) error { return nil },
		"of another user": func(p string) error { return os.Mkdir(p, 0o755) },
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "writable"), 0o777); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(dir, "of another user"), 1234, 1234); err != nil {
			t.Fatal(err)
		}
	} else if err := os.Chmod(filepath.Join(dir, "of another user"), 0o770); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "writable", "link", "file", "missing", "of another user"} {
		if got, want := isPrivateDir(filepath.Join(dir, name)), name == "own"; got != want {
			t.Errorf("isPrivateDir of %q: got %v, want %v", name, got, want)
		}
	}
}

// TestLoad_PrivateRuntime checks that podd uses the private runtime of "make run" if its socket exists and
// no flag sets the endpoint.
func TestLoad_PrivateRuntime(t *testing.T) {
	dir := t.TempDir()
	m := testHost
	m.PrivateRuntimeDir = dir
	cfg, _, err := Load(Flags{}, m)
	if err != nil || cfg.RuntimeEndpoint != "" {
		t.Errorf("without a socket: got endpoint %q, error %v; want none", cfg.RuntimeEndpoint, err)
	}
	socket := filepath.Join(dir, "containerd.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg, _, err = Load(Flags{}, m)
	if err != nil || cfg.RuntimeEndpoint != "unix://"+socket {
		t.Errorf("with a socket: got endpoint %q, error %v; want unix://%s", cfg.RuntimeEndpoint, err, socket)
	}
	cfg, _, err = Load(parse(t, "--container-runtime-endpoint=/other.sock"), m)
	if err != nil || cfg.RuntimeEndpoint != "unix:///other.sock" {
		t.Errorf("with --container-runtime-endpoint: got endpoint %q, error %v; want unix:///other.sock", cfg.RuntimeEndpoint, err)
	}
}

func TestReadHostFacts(t *testing.T) {
	m, err := ReadHostFacts()
	if err != nil || m.Hostname == "" || m.KernelRelease == "" || m.calledAsKubelet() {
		t.Errorf("got %+v, error %v; want a hostname, a release of the kernel, and a program that is not called kubelet", m, err)
	}
}

// TestCanLimitSwap checks whether podd finds the file with the swap limit. file is a file below the mount
// point of the cgroups, and self is the content of /proc/self/cgroup.
func TestCanLimitSwap(t *testing.T) {
	for name, test := range map[string]struct {
		file, self string
		want       bool
	}{
		"v1":                     {"memory/memory.memsw.limit_in_bytes", "5:memory:/\n", true},
		"v1, no swap accounting": {"memory/memory.limit_in_bytes", "5:memory:/\n", false},
		"v2":                     {"system.slice/podd.service/memory.swap.max", "0::/system.slice/podd.service\n", true},
		"v2, no swap accounting": {"system.slice/podd.service/memory.max", "0::/system.slice/podd.service\n", false},
		"v2, root cgroup":        {"memory.stat", "0::/\n", false},
	} {
		dir := t.TempDir()
		file, self := filepath.Join(dir, test.file), filepath.Join(dir, "self")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600), os.WriteFile(self, []byte(test.self), 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := canLimitSwap(dir, self); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
