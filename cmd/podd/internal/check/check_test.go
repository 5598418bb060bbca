package check

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/reconcile/cgroup"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/render"
	"podd/runtime"
	"podd/runtime/stats"
)

// goodFacts returns the facts of a host on which no check fails or warns.
func goodFacts() Facts {
	space := stats.Space{CapacityBytes: 100 << 30, AvailableBytes: 50 << 30, Inodes: 1000, InodesFree: 500}
	cfg := &config.Config{
		Paths:   config.Paths{RootDir: "/var/lib/podd", RunDir: "/run/podd"},
		Runtime: config.Runtime{CgroupDriver: "cgroupfs"},
		DNS:     config.DNS{ResolvConf: "/etc/resolv.conf"},
		Resources: config.Resources{MaxOpenFiles: 1_000_000, Eviction: pressure.Policy{Thresholds: []pressure.Threshold{
			{Signal: pressure.NodefsAvailable, Limit: pressure.Limit{Share: .1}}, {Signal: pressure.NodefsInodesFree, Limit: pressure.Limit{Share: .05}},
			{Signal: pressure.ImagefsAvailable, Limit: pressure.Limit{Share: .15}},
		}}},
	}
	return Facts{
		Config:     cfg,
		Privileges: Privileges{Capabilities: 1<<41 - 1},
		Cgroups:    Cgroups{UsesV2: true, HasSystemd: true, Hierarchies: []cgroup.Hierarchy{{Path: "/sys/fs/cgroup", Controllers: []string{"cpuset", "cpu", "memory", "pids"}}}},
		Kernel:     Kernel{Release: "6.1.0", HasOverlay: true},
		Limits:     Limits{MaxOpenFiles: 524288, NrOpen: 1 << 20, MaxInotifyInstances: 128, MaxInotifyWatches: 65536, MaxPids: 32768, Pids: 300},
		Runtime: Runtime{
			Socket:       "/run/c.sock",
			Node:         runtime.Node{Name: "containerd", Version: "v2.4.2", APIVersion: "v1", Reachable: true, Ready: true, NetworkReady: true, CgroupDriver: "systemd", Handlers: map[string]runtime.Handler{"": {}, "runc": {}}},
			Settings:     runtime.Settings{CNIConfDir: "/etc/cni/net.d", CNIPluginDirs: []string{"/opt/cni/bin"}, CNIPlugins: []string{"bridge"}},
			SandboxImage: "registry.k8s.io/pause:3.10", HasSandboxImage: true,
		},
		Network: Network{ForwardsIPv4: true},
		Directories: []Directory{
			{Purpose: PurposeRootDir, Path: "/var/lib/podd", Existing: "/var/lib", Space: space}, {Purpose: PurposeRunDir, Path: "/run/podd", Existing: "/run", Space: space},
			{Purpose: PurposeLogsDir, Path: "/var/log/pods", Existing: "/var/log", Space: space}, {Purpose: PurposeImageFS, Path: "/img", Existing: "/img", Space: space},
		},
		Clock:          Clock{Now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), BuildTime: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), IsSynchronized: true},
		NameResolution: NameResolution{LookupHost: "n1", DNS: render.DNS{Servers: []string{"10.0.0.1"}}},
		Ports:          []Port{{Flag: "--port", Address: "127.0.0.1:10250"}, {Flag: "--healthz-port", Address: "127.0.0.1:10248"}},
		Processes:      Processes{OwnPID: 1},
	}
}

// errInUse is the error of an attempt to listen on a port that is in use.
var errInUse = fmt.Errorf("listening: %w", unix.EADDRINUSE)

// TestRun checks the problems and skipped checks after one change to the facts of a good host. Each
// element of want has the form "CHECK: OUTCOME: CAUSE; REMEDY" for a problem, or "CHECK: skipped:
// DETAIL" for a skipped check. CAUSE, REMEDY and DETAIL are parts of the actual texts.
func TestRun(t *testing.T) {
	allCapabilitiesExcept := func(bit int) uint64 { return (1<<41 - 1) &^ (1 << bit) }
	for name, c := range map[string]struct {
		change func(f *Facts)
		want   []string
	}{
		"good host": {func(*Facts) {}, nil},

		"configuration with a warning": {func(f *Facts) {
			f.ConfigWarnings = []config.Warning{{Path: "c.yaml", FieldPath: "x", Message: "ignored"}}
		}, []string{"configuration: warning: c.yaml: x: ignored; remove"}},
		"invalid configuration": {
			func(f *Facts) {
				f.Config, f.ConfigErr = nil, errors.Join(errors.New("no file"), config.Errors{{FieldPath: "failSwapOn", Message: "swap is enabled"}, {Severity: manifest.Error, Path: "c.yaml", Message: "bad"}})
			},
			[]string{
				"configuration: failed: no file; correct", "configuration: failed: failSwapOn: swap is enabled; correct", "configuration: failed: c.yaml: bad; correct",
				"runtime: skipped: the configuration is invalid", "sandbox image: skipped: invalid", "pod network: skipped: invalid", "disks: skipped: invalid", "name resolution: skipped: invalid", "ports: skipped: invalid", "node agents: skipped: invalid",
			},
		},

		"not root": {
			func(f *Facts) { f.Privileges.UID = 1000 },
			[]string{
				"privileges: failed: podd is not running as root, so it cannot run pods; sudo", "cgroups: skipped: root", "kernel: skipped: root", "limits: skipped: root", "runtime: skipped: root", "sandbox image: skipped: root",
				"pod network: skipped: root", "disks: skipped: root", "clock: skipped: root", "name resolution: skipped: root", "ports: skipped: root", "node agents: skipped: root",
			},
		},
		"no CAP_SYS_ADMIN": {func(f *Facts) { f.Privileges.Capabilities = allCapabilitiesExcept(unix.CAP_SYS_ADMIN) }, []string{"privileges: failed: CAP_SYS_ADMIN is missing: podd cannot mount; CapabilityBoundingSet"}},
		"no CAP_SYS_RESOURCE": {func(f *Facts) {
			f.Privileges.Capabilities, f.Limits.MaxOpenFiles = allCapabilitiesExcept(unix.CAP_SYS_RESOURCE), 1<<20
		}, []string{"privileges: warning: CAP_SYS_RESOURCE is missing: a runtime; privileged"}},

		"cgroup v1":                           {func(f *Facts) { f.Cgroups.UsesV2, f.Config.WarnsCgroupV1 = false, true }, []string{"cgroups: warning: cgroup v1; failCgroupV1: false"}},
		"cgroup v1 with failCgroupV1: false":  {func(f *Facts) { f.Cgroups.UsesV2 = false }, nil},
		"no cgroups":                          {func(f *Facts) { f.Cgroups.Hierarchies = nil }, []string{"cgroups: failed: no cgroup hierarchy; mount"}},
		"unreadable cgroups":                  {func(f *Facts) { f.Cgroups.Err = errors.New("no mountinfo") }, []string{"cgroups: failed: no mountinfo; mount"}},
		"read-only cgroups":                   {func(f *Facts) { f.Cgroups.Hierarchies[0].IsReadOnly = true }, []string{"cgroups: failed: /sys/fs/cgroup is read-only; read-write"}},
		"no memory controller":                {func(f *Facts) { f.Cgroups.Hierarchies[0].Controllers = []string{"cpu", "pids"} }, []string{"cgroups: failed: controller memory is missing; cgroup_enable=memory"}},
		"no pids controller":                  {func(f *Facts) { f.Cgroups.Hierarchies[0].Controllers = []string{"cpu", "memory"} }, []string{"cgroups: warning: controller pids is missing; CONFIG_CGROUP_PIDS"}},
		"runtime ignores the systemd driver":  {func(f *Facts) { f.Config.ConfiguredCgroupDriver, f.Runtime.Node.CgroupDriver = "systemd", "cgroupfs" }, []string{"cgroups: warning: cgroupDriver: systemd has no effect; SystemdCgroup = true"}},
		"runtime ignores the cgroupfs driver": {func(f *Facts) { f.Config.ConfiguredCgroupDriver, f.Runtime.Node.CgroupDriver = "cgroupfs", "systemd" }, []string{"cgroups: warning: cgroupDriver: cgroupfs has no effect; SystemdCgroup = false"}},
		"systemd driver on a host without systemd": {
			func(f *Facts) { f.Cgroups.HasSystemd = false },
			[]string{"cgroups: failed: the cgroup driver is systemd; SystemdCgroup = false"},
		},

		"no openat2":    {func(f *Facts) { f.Kernel.MissingSyscalls = []string{"openat2"} }, []string{"kernel: failed: system calls openat2; Linux 5.6"}},
		"no namespaces": {func(f *Facts) { f.Kernel.MissingNamespaces = []string{"cgroup"} }, []string{"kernel: failed: these types of namespaces: cgroup; CONFIG_NAMESPACES"}},
		"no overlayfs":  {func(f *Facts) { f.Kernel.HasOverlay = false }, []string{"kernel: warning: overlayfs; modprobe overlay"}},

		"few open files":                 {func(f *Facts) { f.Limits.MaxOpenFiles, f.Limits.NrOpen = 1024, 1024 }, []string{"limits: warning: only 1024 files; LimitNOFILE"}},
		"few open files configured":      {func(f *Facts) { f.Config.MaxOpenFiles = 1024 }, []string{"limits: warning: only 1024 files; LimitNOFILE"}},
		"hard limit that podd can raise": {func(f *Facts) { f.Limits.MaxOpenFiles = 1024 }, nil},
		"hard limit that podd cannot raise": {
			func(f *Facts) { f.Privileges.Capabilities = allCapabilitiesExcept(unix.CAP_SYS_RESOURCE) },
			[]string{"privileges: warning: CAP_SYS_RESOURCE; privileged", "limits: warning: only 524288 files, fewer than maxOpenFiles (1000000); LimitNOFILE=1000000"},
		},
		"maxOpenFiles above fs.nr_open": {func(f *Facts) { f.Config.MaxOpenFiles = 2 << 20 }, []string{"limits: warning: only 1048576 files, fewer than maxOpenFiles (2097152); lower maxOpenFiles"}},
		"no inotify instance":           {func(f *Facts) { f.Limits.InotifyErr = unix.EMFILE }, []string{"limits: warning: cannot watch files with inotify (too many open files); max_user_instances"}},
		"few inotify instances":         {func(f *Facts) { f.Limits.MaxInotifyInstances = 16 }, []string{"limits: warning: only 16 inotify instances; max_user_instances"}},
		"few inotify watches":           {func(f *Facts) { f.Limits.MaxInotifyWatches = 100 }, []string{"limits: warning: only 100 inotify watches; max_user_watches"}},
		"many processes":                {func(f *Facts) { f.Limits.Pids = 32000 }, []string{"limits: warning: 32000 of 32768; pid_max"}},
		"unknown pid limit":             {func(f *Facts) { f.Limits.MaxPids = 0 }, nil},

		"no runtime":      {func(f *Facts) { f.Runtime = Runtime{FindErr: errors.New("no socket")} }, []string{"runtime: failed: no socket; install", "sandbox image: skipped: runtime", "pod network: skipped: runtime"}},
		"no socket":       {func(f *Facts) { f.Runtime.SocketErr = fs.ErrNotExist }, []string{"runtime: failed: /run/c.sock does not exist; systemctl start", "sandbox image: skipped: runtime", "pod network: skipped: runtime"}},
		"stopped runtime": {func(f *Facts) { f.Runtime.SocketErr = unix.ECONNREFUSED }, []string{"runtime: failed: no container runtime listens on /run/c.sock; systemctl start", "sandbox image: skipped: runtime", "pod network: skipped: runtime"}},
		"stopped runtime of make run": {
			func(f *Facts) {
				f.Runtime.Socket, f.Runtime.SocketErr = "/src/podd/.run/containerd.sock", unix.ECONNREFUSED
			},
			[]string{`runtime: failed: no container runtime listens on /src/podd/.run/containerd.sock; start the container runtime with "make run" in /src/podd`, "sandbox image: skipped: runtime", "pod network: skipped: runtime"},
		},
		"not a socket":    {func(f *Facts) { f.Runtime.SocketErr = unix.EPROTOTYPE }, []string{"runtime: failed: connecting to /run/c.sock: protocol; --container-runtime-endpoint", "sandbox image: skipped: runtime", "pod network: skipped: runtime"}},
		"hanging runtime": {func(f *Facts) { f.Runtime.Err = fmt.Errorf("no response: %w", runtime.ErrUnavailable) }, []string{"runtime: failed: does not respond: no response; restart", "sandbox image: skipped: runtime", "pod network: skipped: runtime"}},
		"disabled CRI": {
			func(f *Facts) { f.Runtime.Err, f.Runtime.Remedy = errors.New("does not serve CRI"), "enable it" },
			[]string{"runtime: failed: does not serve CRI; enable it", "sandbox image: skipped: runtime", "pod network: skipped: runtime"},
		},
		"failed query": {func(f *Facts) { f.Runtime.Err = errors.New("no status") }, []string{"runtime: failed: no status; journalctl", "sandbox image: skipped: runtime", "pod network: skipped: runtime"}},
		"CRI v1alpha2": {func(f *Facts) { f.Runtime.Node.APIVersion = "v1alpha2" }, []string{"runtime: failed: implements CRI v1alpha2; containerd 1.6"}},
		"runtime not ready": {
			func(f *Facts) { f.Runtime.Node.Ready, f.Runtime.Node.Message = false, "disk broken" },
			[]string{"runtime: failed: RuntimeReady): disk broken; log"},
		},
		"RuntimeClass with a missing handler":   {func(f *Facts) { f.Config.RuntimeClasses = map[string]string{"vm": "kata"} }, []string{`runtime: warning: RuntimeClass vm: containerd has no handler "kata"; its handlers are runc; --runtime-class`}},
		"RuntimeClass with an existing handler": {func(f *Facts) { f.Config.RuntimeClasses = map[string]string{"std": "runc"} }, nil},
		"runtime that lists no handlers": {func(f *Facts) {
			f.Runtime.Node.Handlers, f.Config.RuntimeClasses = nil, map[string]string{"vm": "kata"}
		}, nil},

		"sandbox image not on the node":      {func(f *Facts) { f.Runtime.HasSandboxImage = false }, []string{"sandbox image: warning: registry.k8s.io/pause:3.10 is not on the node; crictl pull registry.k8s.io/pause:3.10"}},
		"no sandbox image, name unknown":     {func(f *Facts) { f.Runtime.HasSandboxImage, f.Runtime.SandboxImage = false, "" }, []string{"sandbox image: warning: no sandbox image (pinned image); registry"}},
		"failed image query":                 {func(f *Facts) { f.Runtime.ImageErr = errors.New("broken") }, []string{"sandbox image: failed: broken; log"}},
		"sandbox image with an unknown name": {func(f *Facts) { f.Runtime.SandboxImage = "" }, nil},
		"no network": {func(f *Facts) {
			f.Runtime.Node.NetworkReady, f.Runtime.Node.NetworkMessage = false, "cni plugin not initialized"
		}, []string{"pod network: failed: NetworkReady): cni plugin not initialized; install a CNI configuration in /etc/cni/net.d, or correct"}},
		"no network, unknown directory": {func(f *Facts) {
			f.Runtime.Node.NetworkReady, f.Runtime.Settings = false, runtime.Settings{CNIPlugins: []string{"bridge"}}
		}, []string{"pod network: failed: NetworkReady); install a CNI configuration, or correct"}},
		"no IPv4 forwarding": {func(f *Facts) { f.Network.ForwardsIPv4, f.Runtime.Settings.CNIPlugins = false, []string{"calico"} },
			[]string{"pod network: warning: does not forward IPv4; ip_forward=1"}},
		"forwarding that the bridge plugin enables": {func(f *Facts) {
			f.Network.ForwardsIPv4, f.Runtime.Settings.CNIPlugins = false, []string{"portmap", "bridge"}
		}, nil},
		"missing CNI plugins": {func(f *Facts) { f.Network.MissingPlugins = []string{"bridge", "portmap"} }, []string{"pod network: failed: in /etc/cni/net.d needs the plugins bridge, portmap, which are not in /opt/cni/bin; containernetworking-plugins"}},
		"CNI plugins in another directory": {func(f *Facts) {
			f.Network.MissingPlugins, f.Network.PluginDir = []string{"bridge"}, "/usr/lib/cni"
		}, []string{`pod network: failed: needs the plugins bridge, which are in /usr/lib/cni but not in /opt/cni/bin; bin_dir = "/usr/lib/cni" (containerd 2.0 and earlier) or bin_dirs = ["/usr/lib/cni"] (containerd 2.1 and later)`}},
		"cluster without a network": {
			func(f *Facts) {
				f.Config.Cluster.Kubeconfig, f.Runtime.Node.NetworkReady = "/etc/kubeconfig", false
			},
			[]string{"pod network: warning: NetworkReady; network add-on", "pod network: warning: iptables rules do not apply to bridges; br_netfilter"},
		},

		"inaccessible root directory":  {func(f *Facts) { f.Directories[0].Err = unix.EPERM }, []string{"disks: failed: root directory /var/lib/podd: operation not permitted; permissions"}},
		"disk with read errors":        {func(f *Facts) { f.Directories[0].Err = unix.EIO }, []string{"disks: failed: root directory /var/lib/podd: input/output error; dmesg"}},
		"removed NFS export":           {func(f *Facts) { f.Directories[0].Err = unix.ESTALE }, []string{"disks: failed: root directory /var/lib/podd: stale file handle; dmesg"}},
		"stopped FUSE server":          {func(f *Facts) { f.Directories[0].Err = unix.ENOTCONN }, []string{"disks: failed: root directory /var/lib/podd: not connected; dmesg"}},
		"file in place of a directory": {func(f *Facts) { f.Directories[0].Err = unix.ENOTDIR }, []string{"disks: failed: root directory /var/lib/podd: not a directory; move the file"}},
		"disk that does not respond":   {func(f *Facts) { f.Directories[0].Err = ErrHungDisk }, []string{"disks: failed: root directory /var/lib/podd: does not respond; dmesg"}},
		"read-only logs":               {func(f *Facts) { f.Directories[2].IsReadOnly = true }, []string{"disks: failed: pod logs directory /var/log/pods is on a read-only file system (/var/log); dmesg"}},
		"noexec root directory":        {func(f *Facts) { f.Directories[0].IsNoExec = true }, []string{"disks: warning: noexec, so containers cannot execute; --root-dir"}},
		"noexec logs":                  {func(f *Facts) { f.Directories[2].IsNoExec = true }, nil},
		"little disk space":            {func(f *Facts) { f.Directories[0].Space.AvailableBytes = 1 << 30 }, []string{"disks: warning: root directory /var/lib/podd: 1024 MiB are available, less than the threshold nodefs.available (10240 MiB); remove files"}},
		"full run directory":           {func(f *Facts) { f.Directories[1].Space.AvailableBytes = 0 }, []string{"disks: failed: run directory /run/podd: no space is left; remove files"}},
		"few inodes":                   {func(f *Facts) { f.Directories[2].Space.InodesFree = 3 }, []string{"disks: warning: 3 inodes are free, less than the threshold nodefs.inodesFree (50); remove files"}},
		"no inodes":                    {func(f *Facts) { f.Directories[3].Space.InodesFree = 0 }, []string{"disks: failed: image file system /img: no inodes are left; remove files"}},
		"little space for images":      {func(f *Facts) { f.Directories[3].Space.AvailableBytes = 12 << 30 }, []string{"disks: warning: imagefs.available; remove files"}},
		"unknown capacity":             {func(f *Facts) { f.Directories[0].Space = stats.Space{} }, nil},

		"clock before the build": {func(f *Facts) { f.Clock.Now = time.Unix(0, 0) }, []string{"clock: warning: 1970-01-01T00:00:00Z, which is before podd was built (2029-01-01T00:00:00Z); chrony"}},
		"unknown build time":     {func(f *Facts) { f.Clock.BuildTime = time.Time{} }, nil},
		"unsynchronized clock":   {func(f *Facts) { f.Clock.IsSynchronized = false }, []string{"clock: warning: not synchronized; chrony"}},
		"unreadable clock state": {func(f *Facts) { f.Clock.Err = unix.EPERM }, []string{"clock: warning: operation not permitted; adjtimex"}},

		"unknown hostname":       {func(f *Facts) { f.NameResolution.LookupErr = errors.New("no such host") }, []string{"name resolution: warning: this node, n1, cannot be resolved: no such host; /etc/hosts"}},
		"no resolv.conf":         {func(f *Facts) { f.Config.ResolvConf, f.NameResolution.DNS = "", render.DNS{} }, nil},
		"unreadable resolv.conf": {func(f *Facts) { f.NameResolution.ResolvConfErr = errors.New("permission denied") }, []string{"name resolution: failed: permission denied; no pod starts; --resolv-conf"}},
		"missing resolv.conf": {
			func(f *Facts) { f.NameResolution.DNS.Servers, f.NameResolution.ResolvConfMissing = nil, true },
			[]string{"name resolution: warning: /etc/resolv.conf does not exist, so pods cannot resolve names; create the file"},
		},
		"no name servers":   {func(f *Facts) { f.NameResolution.DNS.Servers = nil }, []string{"name resolution: warning: /etc/resolv.conf contains no name servers; --resolv-conf"}},
		"four name servers": {func(f *Facts) { f.NameResolution.DNS.Servers = []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"} }, []string{"name resolution: warning: 4 name servers; /etc/resolv.conf"}},
		"loopback resolver": {func(f *Facts) { f.NameResolution.DNS.Servers = []string{"127.0.0.1", "::1"} }, []string{"name resolution: warning: loopback address 127.0.0.1, ::1; --resolv-conf"}},
		"systemd-resolved": {
			func(f *Facts) {
				f.NameResolution.DNS.Servers, f.NameResolution.HasUpstreamFile = []string{"127.0.0.53"}, true
			},
			[]string{"name resolution: warning: 127.0.0.53; --resolv-conf=/run/systemd/resolve/resolv.conf"},
		},

		"port in use":                       {func(f *Facts) { f.Ports[0].Err, f.Ports[0].Owner = errInUse, Process{7, "nginx"} }, []string{"ports: failed: 127.0.0.1:10250 (--port) is in use by nginx (PID 7); --port"}},
		"port in use by an unknown process": {func(f *Facts) { f.Ports[1].Err = errInUse }, []string{"ports: failed: in use by an unknown process; --healthz-port"}},
		"address of another host":           {func(f *Facts) { f.Ports[0].Err = unix.EADDRNOTAVAIL }, []string{"ports: failed: does not belong to this host; --address"}},
		"privileged port":                   {func(f *Facts) { f.Ports[0].Err = unix.EACCES }, []string{"ports: failed: permission denied; --port"}},
		"no ports":                          {func(f *Facts) { f.Ports = nil }, nil},
		"two flags with the same port": {
			func(f *Facts) { f.Ports[1].Address = f.Ports[0].Address },
			[]string{"ports: failed: cannot listen on 127.0.0.1:10250 (--port) and 127.0.0.1:10250 (--healthz-port); another port with --healthz-port"},
		},
		"port of all addresses and of one address": {
			func(f *Facts) { f.Ports[1].Address = "[::]:10250" },
			[]string{"ports: failed: cannot listen on 127.0.0.1:10250 (--port) and [::]:10250 (--healthz-port); another port with --healthz-port"},
		},
		"port of all IPv4 addresses and of an IPv6 address": {
			func(f *Facts) { f.Ports[0].Address, f.Ports[1].Address = "0.0.0.0:10250", "[::1]:10250" },
			[]string{"ports: failed: cannot listen on 0.0.0.0:10250 (--port) and [::1]:10250 (--healthz-port); another port with --healthz-port"},
		},
		"two addresses with the same port": {func(f *Facts) { f.Ports[1].Address = "127.0.0.2:10250" }, nil},
		"port of the running podd": {
			func(f *Facts) {
				f.Processes.RootDirPID, f.Processes.SocketPID = 9, 9
				f.Ports[0].Err, f.Ports[0].Owner = errInUse, Process{9, "podd"}
			}, nil,
		},
		"port of the starting podd": {
			func(f *Facts) {
				f.Processes.IsStarting = true
				f.Ports[0].Err, f.Ports[0].Owner = errInUse, Process{1, "podd"}
			}, nil,
		},

		"podd that starts with the directories of a running podd": {
			func(f *Facts) {
				f.Processes = Processes{OwnPID: 1, IsStarting: true, RootDirPID: 9, SocketPID: 9, Agents: []Agent{{Process: Process{9, "kubelet"}, SharesRoot: true}}}
			},
			[]string{"node agents: failed: root directory /var/lib/podd is in use by the podd with PID 9; --root-dir", "node agents: failed: run directory /run/podd is in use by the podd with PID 9; --run-dir"},
		},
		"running podd with the same root directory": {
			func(f *Facts) { f.Processes.RootDirPID = 9 },
			[]string{"node agents: failed: root directory /var/lib/podd is in use by the podd with PID 9; --root-dir"},
		},
		"running podd with the same run directory": {
			func(f *Facts) { f.Processes.SocketPID = 9 },
			[]string{"node agents: failed: run directory /run/podd is in use by the podd with PID 9; --run-dir"},
		},
		"running kubelet": {func(f *Facts) { f.Processes.Agents = []Agent{{Process: Process{7, "kubelet"}}} }, []string{"node agents: warning: kubelet (PID 7) is running; systemctl disable --now kubelet"}},
		"running kubelet with the same root directory": {func(f *Facts) { f.Processes.Agents = []Agent{{Process: Process{7, "kubelet"}, SharesRoot: true}} }, []string{"node agents: failed: kubelet (PID 7) also uses the root directory /var/lib/podd; systemctl disable"}},
		"running kubelet with the same manifests": {func(f *Facts) {
			f.Processes.Agents = []Agent{{Process: Process{7, "kubelet"}, SharedManifests: []string{"/m"}}}
		}, []string{"node agents: failed: kubelet (PID 7) also runs the pods in /m; systemctl disable"}},
		"running podd with the same manifests": {func(f *Facts) {
			f.Processes.Agents = []Agent{{Process: Process{7, "podd"}, SharedManifests: []string{"/m"}}}
		}, []string{"node agents: failed: podd (PID 7) also runs the pods in /m; other manifests"}},
		"running podd with other directories": {func(f *Facts) { f.Processes.Agents = []Agent{{Process: Process{7, "podd"}}} }, nil},
		"podd check while podd runs as kubelet": {func(f *Facts) {
			f.Processes = Processes{RootDirPID: 9, SocketPID: 9, Agents: []Agent{{Process: Process{9, "kubelet"}, SharesRoot: true}}}
		}, nil},
		"no /proc": {func(f *Facts) { f.Processes.Err = errors.New("no /proc") }, []string{"node agents: warning: no /proc; mount"}},
	} {
		f := goodFacts()
		c.change(&f)
		report := Run(f)
		if len(report.Checks) != len(checks) {
			t.Errorf("%s: got the results of %d checks, want %d", name, len(report.Checks), len(checks))
		}
		checkProblems(t, name, report, c.want)
	}
}

// checkProblems compares the problems and skipped checks of a report with want. The comment of TestRun
// describes the form of want.
func checkProblems(t *testing.T, name string, report Report, want []string) {
	t.Helper()
	var got []string
	outcome := OK
	for _, r := range report.Checks {
		if r.Detail == "" {
			t.Errorf("%s: the check %q has no detail", name, r.Check)
		}
		if r.Outcome == Skipped {
			got = append(got, fmt.Sprintf("%s: skipped: %s", r.Check, r.Detail))
		}
		for _, p := range r.Problems {
			got = append(got, fmt.Sprintf("%s: %s: %s; %s", r.Check, p.Outcome, p.Cause, p.Remedy))
			outcome = worse(outcome, p.Outcome)
		}
	}
	if report.Outcome != outcome {
		t.Errorf("%s: got outcome %s, want %s", name, report.Outcome, outcome)
	}
	if len(got) != len(want) {
		t.Errorf("%s: got problems\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		return
	}
	for i := range want {
		if !containsInOrder(got[i], want[i]) {
			t.Errorf("%s: got %q, want the parts of %q in this order", name, got[i], want[i])
		}
	}
}

// containsInOrder splits want at ": " and "; ". It reports whether text contains the resulting parts in
// the same order.
func containsInOrder(text, want string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(want, "; ", ": "), ": ") {
		_, rest, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = rest
	}
	return true
}

// TestRun_NetworkRemedy checks that a problem of the pod network contains only one remedy. A runtime that
// reports the cause also has a remedy, which does not apply to a node of a cluster.
func TestRun_NetworkRemedy(t *testing.T) {
	const cause = "the pod network is not ready (condition NetworkReady): no CNI configuration in /etc/cni/net.d"
	for kubeconfig, remedy := range map[string]string{
		"":                "install a CNI configuration in /etc/cni/net.d, or correct the existing one, and install its plugins; pods on the host network need none",
		"/etc/kubeconfig": "install a network add-on in the cluster, or correct its CNI configuration on this node",
	} {
		f := goodFacts()
		f.Config.Cluster.Kubeconfig, f.Network.FiltersBridges, f.Runtime.Node.NetworkReady = kubeconfig, true, false
		f.Runtime.Node.NetworkMessage, f.Runtime.Node.NetworkRemedy = "no CNI configuration in /etc/cni/net.d", "install a CNI configuration; without one, only pods on the host network start"
		var got []Problem
		for _, r := range Run(f).Checks {
			got = append(got, r.Problems...)
		}
		if len(got) != 1 || got[0].Cause != cause || got[0].Remedy != remedy {
			t.Errorf("kubeconfig %q: got problems %+v, want one with the cause %q and the remedy %q", kubeconfig, got, cause, remedy)
		}
	}
}

// TestRun_Details checks the details of all checks on a good host, and the details that are different
// if podd runs or if swap is enabled.
func TestRun_Details(t *testing.T) {
	want := map[string]string{
		"configuration": "valid", "privileges": "root", "cgroups": "v2, controllers cpu cpuset memory pids, driver systemd", "kernel": "Linux 6.1.0",
		"limits": "1000000 open files, 128 inotify instances, 65536 watches", "runtime": "containerd v2.4.2, CRI v1", "sandbox image": "registry.k8s.io/pause:3.10",
		"pod network": "ready, plugins bridge", "disks": "51200 MiB of 102400 MiB free for pods, 51200 MiB of 102400 MiB free for images",
		"clock": "2030-01-02T03:04:05Z, synchronized", "name resolution": "name servers 10.0.0.1", "ports": "127.0.0.1:10250, 127.0.0.1:10248", "node agents": "none",
	}
	got := map[string]string{}
	for _, r := range Run(goodFacts()).Checks {
		got[r.Check] = r.Detail
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	f := goodFacts()
	f.Processes.RootDirPID, f.Processes.SocketPID, f.Kernel.SwapEnabled = 9, 9, true
	for _, r := range Run(f).Checks {
		want, ok := map[string]string{"node agents": "podd is running (PID 9)", "kernel": "Linux 6.1.0, with swap"}[r.Check]
		if ok && r.Detail != want {
			t.Errorf("if podd is running and swap is enabled: check %s: got the detail %q, want %q", r.Check, r.Detail, want)
		}
	}
}

// TestReport_Count checks that Count counts a check with two problems once.
func TestReport_Count(t *testing.T) {
	f := goodFacts()
	f.Ports[0].Err, f.Ports[1].Err, f.Clock.IsSynchronized = errInUse, errInUse, false
	r := Run(f)
	if failed, warnings := r.Count(Failed), r.Count(Warning); failed != 1 || warnings != 1 || r.Outcome != Failed {
		t.Errorf("got %d failed checks, %d checks with warnings, outcome %s; want 1 failed check, 1 check with warnings, outcome failed", failed, warnings, r.Outcome)
	}
}
