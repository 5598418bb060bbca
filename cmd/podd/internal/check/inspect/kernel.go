package inspect

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/reconcile/cgroup"
	"podd/reconcile/node"
	"podd/runtime"
)

// readPrivileges returns the user and the effective capabilities of this process.
func readPrivileges() check.Privileges {
	p := check.Privileges{UID: os.Geteuid()}
	var sets [2]unix.CapUserData // the low and the high 32 bits
	if unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]) == nil {
		p.Capabilities = uint64(sets[0].Effective) | uint64(sets[1].Effective)<<32
	}
	return p
}

func readCgroups(facts config.HostFacts) check.Cgroups {
	c := check.Cgroups{HasSystemd: exists("/run/systemd/system"), UsesV2: facts.UsesCgroupV2}
	c.Hierarchies, c.Err = cgroup.Hierarchies()
	return c
}

func readKernel(facts config.HostFacts) check.Kernel {
	filesystems, _ := os.ReadFile("/proc/filesystems")
	k := check.Kernel{
		Release: host.KernelRelease(), MissingSyscalls: missingSyscalls(),
		HasOverlay: slices.Contains(strings.Fields(string(filesystems)), "overlay"), SwapEnabled: facts.SwapEnabled,
	}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
		if !exists(filepath.Join("/proc/self/ns", kind)) {
			k.MissingNamespaces = append(k.MissingNamespaces, kind)
		}
	}
	return k
}

// missingSyscalls tries the newest system calls that podd needs. It returns the names of the calls
// that fail because the kernel does not have them, or because a seccomp profile forbids them.
func missingSyscalls() (missing []string) {
	for _, c := range []struct {
		name string
		open func() (fd int, err error)
	}{
		{"openat2", func() (int, error) { return unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH}) }},
		{"pidfd_open", func() (int, error) { return unix.PidfdOpen(os.Getpid(), 0) }},
	} {
		fd, err := c.open()
		if err == nil {
			unix.Close(fd)
		} else if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			missing = append(missing, c.name)
		}
	}
	return missing
}

func readLimits() check.Limits {
	l := check.Limits{
		MaxInotifyInstances: readNumber("/proc/sys/fs/inotify/max_user_instances"),
		MaxInotifyWatches:   readNumber("/proc/sys/fs/inotify/max_user_watches"),
		InotifyErr:          tryInotify(),
		MaxPids:             node.ReadMaxPids(), Pids: node.CountProcesses(),
		NrOpen: uint64(readNumber("/proc/sys/fs/nr_open")),
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		l.MaxOpenFiles = files.Max
	}
	return l
}

// tryInotify creates an inotify instance with a watch and removes both.
func tryInotify() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, "/", unix.IN_CREATE)
	return os.NewSyscallError("inotify_add_watch", err)
}

// pluginDirs contains the directories in which packages install CNI plugins: Debian's package, those
// of Kubernetes and Docker, and those of Fedora and Alpine Linux.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// readNetwork reads the settings of the kernel, and looks for the plugins in the directories that
// the runtime reports. If it does not find them there, it looks in knownPluginDirs.
func readNetwork(s runtime.Settings, knownPluginDirs []string) check.Network {
	n := check.Network{
		ForwardsIPv4:   readNumber("/proc/sys/net/ipv4/ip_forward") == 1,
		FiltersBridges: readNumber("/proc/sys/net/bridge/bridge-nf-call-iptables") == 1,
	}
	dirs := slices.DeleteFunc(slices.Clone(s.CNIPluginDirs), func(dir string) bool { return !exists(dir) })
	if len(dirs) < len(s.CNIPluginDirs) && len(dirs) == 0 && !exists(s.CNIConfDir) {
		// The runtime has another root directory, for example in a container, so the paths that it
		// reports do not apply to this host.
		return n
	}
	n.MissingPlugins = missingPlugins(s.CNIPlugins, dirs...)
	if len(n.MissingPlugins) == 0 {
		return n
	}
	for _, dir := range knownPluginDirs {
		// Before containerd 2.1, all plugins had to be in one directory (bin_dir).
		if len(missingPlugins(s.CNIPlugins, dir)) == 0 {
			n.PluginDir = dir
			break
		}
	}
	return n
}

// missingPlugins returns the plugins that are in none of the directories.
func missingPlugins(plugins []string, dirs ...string) (missing []string) {
	for _, plugin := range plugins {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return exists(filepath.Join(dir, plugin)) }) {
			missing = append(missing, plugin)
		}
	}
	return missing
}

func readClock(now time.Time) check.Clock {
	c := check.Clock{Now: now, BuildTime: buildTime()}
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	c.Err = os.NewSyscallError("adjtimex", err)
	c.IsSynchronized = err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
	return c
}

// buildTime returns the time of the commit from which podd was built, or the zero time if it is
// unknown.
func buildTime() time.Time {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.time" {
			t, _ := time.Parse(time.RFC3339, s.Value) // the zero time after an error
			return t
		}
	}
	return time.Time{}
}

// exists reports whether there is a file or a directory at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readNumber returns the number in a file, or 0 if it cannot be read.
func readNumber(path string) int64 {
	n, _ := strconv.ParseInt(host.ReadFirstLine(path), 10, 64)
	return n
}
