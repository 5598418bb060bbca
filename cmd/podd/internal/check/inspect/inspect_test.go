package inspect

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/runtime"
	"podd/server"
)

// TestParseListener checks the addresses of listening sockets. want is "" for lines of other sockets
// and invalid lines. The addresses in the lines are little-endian, as on all hosts that podd supports.
func TestParseListener(t *testing.T) {
	const rest = " 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 46733 1"
	for line, want := range map[string]string{
		"0: 0100007F:280A" + rest:                                                                      "127.0.0.1:10250",
		"0: 00000000:0050" + rest:                                                                      "0.0.0.0:80",
		"0: 00000000000000000000000001000000:280A" + rest:                                              "[::1]:10250",
		"0: 0000000000000000FFFF00000100007F:280A" + rest:                                              "127.0.0.1:10250",
		strings.Replace("0: 0100007F:280A"+rest, " 0A ", " 01 ", 1):                                    "",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout x": "",
		"0: 0100:280A" + rest:                                                                          "",
		"0: 0100007F:XYZ" + rest:                                                                       "",
		"":                                                                                             "",
	} {
		l, ok := parseListener(line)
		if !ok && want == "" {
			continue
		}
		if !ok || l.address.String() != want || l.inode != "46733" {
			t.Errorf("%q: got address %v, inode %q, ok %v; want address %q, inode 46733", line, l.address, l.inode, ok, want)
		}
	}
}

func TestListener_Conflicts(t *testing.T) {
	for _, c := range []struct {
		listens, address string
		want             bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.1:81", false},
		{"127.0.0.1:80", "127.0.0.2:80", false},
		{"127.0.0.1:80", "0.0.0.0:80", true},
		{"[::1]:80", "0.0.0.0:80", true},
		{"[::]:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "localhost:80", false},
	} {
		if got := (listener{address: netip.MustParseAddrPort(c.listens)}).conflicts(c.address); got != c.want {
			t.Errorf("listener on %s conflicts with %s: got %v, want %v", c.listens, c.address, got, c.want)
		}
	}
}

// TestConflict_Sockets compares check.Conflict with the kernel: it listens on each pair of addresses as
// podd does.
func TestConflict_Sockets(t *testing.T) {
	listen := func(ip netip.Addr, port uint16) (net.Listener, error) {
		return server.Listen(t.Context(), "--port", netip.AddrPortFrom(ip, port).String())
	}
	var ips []netip.Addr
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"} {
		ip := netip.MustParseAddr(host)
		ln, err := listen(ip, 0)
		if err != nil && ip.Is6() {
			continue // the host has no IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		ips = append(ips, ip)
	}
	// try listens on the addresses first and second with a port that was free on all addresses. It returns
	// the port and the errors of both calls.
	try := func(first, second netip.Addr) (port uint16, firstErr, secondErr error) {
		all, err := listen(netip.IPv4Unspecified(), 0)
		if err != nil {
			t.Fatal(err)
		}
		port = uint16(all.Addr().(*net.TCPAddr).Port)
		all.Close()
		ln, err := listen(first, port)
		if err != nil {
			return port, err, nil
		}
		defer ln.Close()
		other, err := listen(second, port)
		if err == nil {
			other.Close()
		}
		return port, nil, err
	}
	for _, first := range ips {
		for _, second := range ips {
			port, firstErr, err := try(first, second)
			got := check.Conflict(netip.AddrPortFrom(first, port), netip.AddrPortFrom(second, port))
			// Another program may begin to use the port at any time. It does not use the ports of all attempts.
			for attempt := 0; attempt < 10 && (firstErr != nil || !got && err != nil); attempt++ {
				_, firstErr, err = try(first, second)
			}
			if firstErr != nil || got != errors.Is(err, unix.EADDRINUSE) {
				t.Errorf("listener on %s (error %v), then on %s: got conflict %v, want the result of the second call, error %v", first, firstErr, second, got, err)
			}
		}
	}
}

// TestReadProcesses_PortOwner checks that readProcesses finds the process that listens on a port of
// podd, which is the test itself.
func TestReadProcesses_PortOwner(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		cfg := &config.Config{Paths: config.Paths{RootDir: t.TempDir(), RunDir: t.TempDir()}}
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		cfg.API.Address = "127.0.0.1:" + port
		ports := tryPorts(t.Context(), &cfg.Server)
		p := readProcesses(t.Context(), cfg, ports)
		if len(ports) != 1 || ports[0].Err == nil || ports[0].Owner.PID != os.Getpid() || ports[0].Owner.Name == "" {
			t.Errorf("listener on %s: got ports %+v, want one port in use by PID %d", address, ports, os.Getpid())
		}
		if p.RootDirPID != 0 || p.SocketPID != 0 || p.Err != nil {
			t.Errorf("listener on %s: got processes %+v, want no podd that uses the same directories", address, p)
		}
	}
}

// TestParseCommandLine checks the settings in the command lines of kubelets and podds. The wanted
// settings are nil if the process is a podd that is not a node agent.
func TestParseCommandLine(t *testing.T) {
	for line, want := range map[string]*agentSettings{
		"/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --root-dir /k": {rootDir: "/k", configFile: "/var/lib/kubelet/config.yaml"},
		"podd --pod-manifest-path=/a --pod-manifest-path /b":                   {manifests: []string{"/a", "/b"}},
		"podd run --root_dir=/r --runonce=false":                               {rootDir: "/r"},
		"podd run --runonce a.yaml":                                            nil,
		"podd --runonce=true":                                                  nil,
		"podd ps --root-dir=/r":                                                nil,
		"kubelet /r":                                                           {},
		"kubelet 300":                                                          {},
		"kubelet":                                                              {},
		"podd --root-dir":                                                      {},
		"/usr/local/bin/kubelet --node-ip 10.0.0.1 --pod-manifest-path=/m --config x": {configFile: "x", manifests: []string{"/m"}},
	} {
		got, ok := parseCommandLine(strings.Fields(line))
		if ok != (want != nil) {
			t.Errorf("%s: got settings %+v, ok %v; want settings %+v, ok %v", line, got, ok, want, want != nil)
			continue
		}
		if diff := cmp.Diff(want, &got, cmp.AllowUnexported(agentSettings{})); ok && diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// TestAgentSettings_Resolve checks the manifest path that resolve reads from a configuration file, and
// the default root directory. Relative paths must be resolved in the working directory of the process,
// which is the test itself (/proc/self).
func TestAgentSettings_Resolve(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"good.yaml": "kind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests\n", "relative.yaml": "staticPodPath: m\n",
		"invalid.yaml": "{", "other.yaml": "a: b\n", "long.yaml": "#" + strings.Repeat("x", maxConfigSize) + "\nstaticPodPath: /m\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"good.yaml": {"/etc/kubernetes/manifests"}, "relative.yaml": {filepath.Join(dir, "m")}, "invalid.yaml": nil, "other.yaml": nil, "long.yaml": nil, "fifo": nil, "none.yaml": nil, "": nil,
	} {
		s := agentSettings{configFile: file}
		s.resolve("kubelet", "/proc/self")
		if !slices.Equal(s.manifests, want) || s.rootDir != config.KubeletRootDir {
			t.Errorf("configuration file %q: got %+v, want manifests %q and the default root directory", file, s, want)
		}
	}
	s := agentSettings{rootDir: "r", manifests: []string{"m"}}
	s.resolve("podd", "/proc/self")
	if s.rootDir != filepath.Join(dir, "r") || s.manifests[0] != filepath.Join(dir, "m") {
		t.Errorf("relative paths: got %+v, want paths in %s", s, dir)
	}
}

// TestReadDirectory checks that readDirectory finds the closest existing directory, and that it fails
// if a file is in the way.
func TestReadDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The timeout cannot expire on a busy machine, because the clock of synctest stands still during a
	// system call.
	read := func(path string) (d check.Directory) {
		synctest.Test(t, func(t *testing.T) { d = readDirectory(t.Context(), check.Directory{Path: path}) })
		return d
	}
	for path, want := range map[string]string{dir: dir, filepath.Join(dir, "a/b"): dir} {
		d := read(path)
		if d.Err != nil || d.Existing != want || d.Space.CapacityBytes == 0 {
			t.Errorf("%s: got %+v, want the existing directory %s and its capacity", path, d, want)
		}
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		// The report contains the path, so the error must not repeat it.
		if d := read(path); !errors.Is(d.Err, unix.ENOTDIR) || strings.Contains(d.Err.Error(), path) {
			t.Errorf("%s: got %+v, want the error ENOTDIR without the path", path, d)
		}
	}
}

// TestReadNetwork_MissingPlugins checks the missing CNI plugins. There are none if the runtime runs in
// a container, because its directories do not exist on the host.
func TestReadNetwork_MissingPlugins(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bridge"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	plugins := []string{"bridge", "portmap"}
	for name, c := range map[string]struct {
		settings runtime.Settings
		want     []string
	}{
		"one of two":               {runtime.Settings{CNIConfDir: dir, CNIPluginDirs: []string{dir + "/none", dir}, CNIPlugins: plugins}, []string{"portmap"}},
		"no plugin directory":      {runtime.Settings{CNIConfDir: dir, CNIPluginDirs: []string{dir + "/none"}, CNIPlugins: plugins}, plugins},
		"runtime in a container":   {runtime.Settings{CNIConfDir: dir + "/none", CNIPluginDirs: []string{dir + "/none"}, CNIPlugins: plugins}, nil},
		"runtime without settings": {runtime.Settings{}, nil},
	} {
		if got := readNetwork(c.settings, nil).MissingPlugins; !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestReadNetwork_PluginDir checks that readNetwork finds a directory that contains all plugins if the
// runtime does not find one of them.
func TestReadNetwork_PluginDir(t *testing.T) {
	empty, one, other, all := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(one, "bridge"), filepath.Join(other, "portmap"), filepath.Join(all, "bridge"), filepath.Join(all, "portmap")} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		runtimeDir string
		knownDirs  []string
		want       string
	}{
		"no plugins found":                   {empty, []string{one, all}, all},
		"one plugin found":                   {one, []string{other, all}, all},
		"each plugin in its own directory":   {one, []string{one, other}, ""},
		"all plugins found":                  {all, []string{one, all}, ""},
		"plugins in no well-known directory": {empty, nil, ""},
	} {
		settings := runtime.Settings{CNIConfDir: empty, CNIPluginDirs: []string{c.runtimeDir}, CNIPlugins: []string{"bridge", "portmap"}}
		if got := readNetwork(settings, c.knownDirs).PluginDir; got != c.want {
			t.Errorf("%s: got directory %q, want %q", name, got, c.want)
		}
	}
}

// TestTryConnect checks that tryConnect distinguishes a path that is not a socket from the socket of a
// stopped runtime. The kernel reports the same error for both.
func TestTryConnect(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	if err := tryConnect(t.Context(), socket); err != nil {
		t.Errorf("socket of a running program: got error %v, want none", err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	for path, want := range map[string]error{socket: unix.ECONNREFUSED, dir: errNotSocket, filepath.Join(dir, "none"): unix.ENOENT} {
		if err := tryConnect(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", path, err, want)
		}
	}
}

// TestReadFacts_NoConfig checks that ReadFacts reads the facts that do not depend on the configuration,
// even if there is no valid configuration.
func TestReadFacts_NoConfig(t *testing.T) {
	f := ReadFacts(t.Context(), Options{})
	if f.Kernel.Release == "" || f.Limits.MaxOpenFiles == 0 || len(f.Kernel.MissingNamespaces) > 0 || f.Clock.Now.IsZero() || f.Runtime.Socket != "" {
		t.Errorf("got %+v, want the kernel, limits and clock of this host, and no runtime", f)
	}
}
