package cri

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/runtime"
)

func TestSocketPath(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///run/containerd/containerd.sock": "/run/containerd/containerd.sock",
		"unix:/run/x.sock":                       "/run/x.sock",
		"/run//x.sock":                           "/run/x.sock",
	} {
		if got, err := socketPath(endpoint); err != nil || got != want {
			t.Errorf("socketPath(%q): got %q (error %v), want %q", endpoint, got, err, want)
		}
	}
	for _, endpoint := range []string{"", "run/x.sock", "unix://run/x.sock", "tcp://127.0.0.1:1234", "npipe:////./pipe/x"} {
		if got, err := socketPath(endpoint); err == nil || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("socketPath(%q): got %q (error %v), want an error with \"endpoint\"", endpoint, got, err)
		}
	}
}

func TestDiscover(t *testing.T) {
	dir, err := os.MkdirTemp("", "discover")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	plain, socket := filepath.Join(dir, "file.sock"), filepath.Join(dir, "real.sock")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if got, err := discover([]string{filepath.Join(dir, "none.sock"), plain, socket}); err != nil || got != socket {
		t.Errorf("discover with a socket: got %q (error %v), want %q", got, err, socket)
	}
	if got, err := discover([]string{plain}); err == nil || !strings.Contains(err.Error(), plain) {
		t.Errorf("discover with a regular file: got %q (error %v), want an error that names %s", got, err, plain)
	}
}

func TestDisabledCRI(t *testing.T) {
	for config, want := range map[string]string{
		`disabled_plugins = ["cri"]`:                                                        "cri",
		"#   Copyright\ndisabled_plugins = [\"cri\"] # Docker":                              "cri",
		"disabled_plugins = [\n  'aufs',\n  'io.containerd.grpc.v1.cri',\n]\n":              "io.containerd.grpc.v1.cri",
		"version = 3\ndisabled_plugins = []\n[plugins.\"cri\"]\n":                           "",
		"# disabled_plugins = [\"cri\"]\n":                                                  "",
		"":                                                                                  "",
		"disabled_plugins = ['io.containerd.cri.v1.runtime']":                               "io.containerd.cri.v1.runtime",
		"disabled_plugins = [\"aufs\"]\n[plugins]\n  other = [\"cri\"]\n":                   "",
		"disabled_plugins = [\"aufs\",\n# \"cri\"\n]\nrequired_plugins = [\"cri\"]\n":       "",
		"disabled_plugins = " + strings.Repeat("x", 1<<17) + "\ndisabled_plugins=[\"cri\"]": "",
	} {
		if got := parseDisabledPlugin(strings.NewReader(config)); got != want {
			t.Errorf("%.60q: got %q, want %q", config, got, want)
		}
	}
	const wantCause = `"cri" is in disabled_plugins of `
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(`disabled_plugins = ["cri"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRemedy := `remove "cri" from disabled_plugins of ` + path + ", and restart containerd"
	if cause, remedy := explainDisabledCRI(path); !strings.HasPrefix(cause, wantCause+path) || remedy != wantRemedy {
		t.Errorf("explainDisabledCRI of a configuration that disables CRI: got cause %q, remedy %q; want the prefix %q, %q", cause, remedy, wantCause+path, wantRemedy)
	}
	if cause, _ := explainDisabledCRI(path + ".none"); strings.HasPrefix(cause, wantCause) {
		t.Errorf("explainDisabledCRI of a missing file: got cause %q, want another prefix than %q", cause, wantCause)
	}
}

func TestParseConfig_CgroupDriver(t *testing.T) {
	const runc = `{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"runtimeType":"io.containerd.runc.v2","options":{"SystemdCgroup":%}}}}}`
	for config, want := range map[string]string{
		strings.Replace(runc, "%", "true", 1):                        "systemd",
		strings.Replace(runc, "%", "false", 1):                       "cgroupfs",
		strings.Replace(runc, "io.containerd.runc.v2", "kata.v2", 1): "",
		"": "", "null": "", "[]": "", `{"containerd":{}}`: "",
	} {
		if got, _ := parseConfig(config); got != want {
			t.Errorf("%s: got %q, want %q", config, got, want)
		}
	}
}

func TestParseConfig_Handlers(t *testing.T) {
	_, got := parseConfig(`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"runtimeType":"io.containerd.runc.v2"},"kata":{}}}}`)
	want := map[string]runtime.Handler{"": {}, "runc": {}, "kata": {}}
	if !maps.Equal(got, want) {
		t.Errorf("handlers: got %v, want %v", got, want)
	}
	if _, got := parseConfig("{}"); got != nil {
		t.Errorf("handlers of an empty config: got %v, want nil", got)
	}
}
