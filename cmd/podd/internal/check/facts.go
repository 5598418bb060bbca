package check

import (
	"time"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/cgroup"
	"podd/reconcile/render"
	"podd/runtime"
	"podd/runtime/stats"
)

// Facts contains the properties of the host and of this process that the checks depend on.
type Facts struct {
	// Config is the configuration of podd, or nil if it is invalid. If it is nil, the facts that
	// depend on the configuration are not set.
	Config *config.Config
	// ConfigWarnings and ConfigErr are the results of loading the configuration.
	ConfigWarnings []config.Warning
	ConfigErr      error

	Privileges     Privileges
	Cgroups        Cgroups
	Kernel         Kernel
	Limits         Limits
	Runtime        Runtime
	Network        Network
	Directories    []Directory
	Clock          Clock
	NameResolution NameResolution
	Ports          []Port
	Processes      Processes
}

// Privileges contains the privileges of this process.
type Privileges struct {
	UID          int
	Capabilities uint64 // effective capabilities, one bit for each CAP_ constant
}

// Cgroups contains the cgroup hierarchies of the host.
type Cgroups struct {
	UsesV2      bool // cgroup v2 is mounted at /sys/fs/cgroup
	Hierarchies []cgroup.Hierarchy
	// HasSystemd is set if systemd is the init process of the host.
	HasSystemd bool
	Err        error // error of reading the hierarchies
}

// Kernel contains the features of the kernel.
type Kernel struct {
	Release           string   // such as "6.1.0-13-amd64"
	MissingSyscalls   []string // system calls that podd needs and the kernel does not have
	MissingNamespaces []string // kinds of namespaces that pods need and the kernel does not have
	HasOverlay        bool
	SwapEnabled       bool
}

// Limits contains the limits of the kernel and of this process.
type Limits struct {
	MaxOpenFiles uint64 // hard limit of this process
	// NrOpen is the highest limit to which a process with CAP_SYS_RESOURCE can raise MaxOpenFiles
	// (fs.nr_open); 0 if it is unknown.
	NrOpen uint64
	// MaxInotifyInstances and MaxInotifyWatches are the limits for each user.
	MaxInotifyInstances, MaxInotifyWatches int64
	InotifyErr                             error // error of creating an instance and a watch
	MaxPids, Pids                          int64 // limit and number of processes and threads; 0 if unknown
}

// Runtime contains the state of the container runtime.
type Runtime struct {
	FindErr   error  // not nil if no runtime was configured or found
	Socket    string // path of the socket; "" if FindErr is not nil
	SocketErr error  // error of connecting to the socket
	Node      runtime.Node
	Settings  runtime.Settings
	Err       error  // error of querying Node or Settings
	Remedy    string // remedy for Err, or "" if it is unknown
	// SandboxImage is the name of the sandbox image, or "" if it is unknown. HasSandboxImage reports
	// whether the node has this image or, if the name is unknown, any pinned image.
	SandboxImage    string
	HasSandboxImage bool
	ImageErr        error // error of querying the sandbox image
}

// Network contains the settings of the kernel for the network of pods.
type Network struct {
	ForwardsIPv4 bool // net.ipv4.ip_forward
	// FiltersBridges is set if iptables rules apply to the packets of bridges.
	FiltersBridges bool
	// MissingPlugins contains the CNI plugins of the runtime's configuration that do not exist.
	MissingPlugins []string
	// PluginDir is a directory that contains all plugins of the configuration, but in which the
	// runtime does not look for MissingPlugins; "" if there is none.
	PluginDir string
}

// A Directory is a directory that podd or the runtime writes.
type Directory struct {
	Purpose string // such as "root directory"
	Path    string
	// Existing is Path or, if Path does not exist, its nearest parent directory that exists. podd
	// creates the missing directories.
	Existing   string
	IsReadOnly bool
	IsNoExec   bool
	Space      stats.Space
	Err        error // error of finding or accessing Existing
}

// Clock contains the state of the clock.
type Clock struct {
	Now time.Time
	// BuildTime is the time of podd's source code; zero if it is unknown.
	BuildTime      time.Time
	IsSynchronized bool
	Err            error // error of querying the kernel
}

// NameResolution contains the state of name resolution.
type NameResolution struct {
	LookupHost    string // the name that was looked up
	LookupErr     error
	DNS           render.DNS // content of the resolv.conf for pods
	ResolvConfErr error      // error of reading the resolv.conf for pods
	// ResolvConfMissing is set if the configured resolv.conf does not exist.
	ResolvConfMissing bool
	// HasUpstreamFile is set if systemd-resolved provides a file with its upstream name servers.
	HasUpstreamFile bool
}

// A Port is an address on which podd listens.
type Port struct {
	Flag    string // such as "--port"
	Address string // such as "127.0.0.1:10250"
	Err     error  // error of listening
	Owner   Process
}

// A Process is a process of the host. The zero value is an unknown process.
type Process struct {
	PID  int
	Name string // command name, without arguments because they may contain secrets
}

// Processes contains the processes that run pods.
type Processes struct {
	OwnPID int // PID of this process
	// IsStarting is set if this process is a daemon that failed to start. It is not set for podd
	// check.
	IsStarting bool
	RootDirPID int // PID of the podd that has locked the root directory; 0 if there is none
	SocketPID  int // PID of the podd that listens in the run directory; 0 if there is none
	Agents     []Agent
	Err        error // error of listing the processes
}

// An Agent is a running kubelet or another running podd.
type Agent struct {
	Process
	SharesRoot      bool     // the agent uses the root directory of this podd
	SharedManifests []string // manifests of this podd that the agent runs, too
}
