package config

import (
	"encoding/json"
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"
	credential "k8s.io/kubelet/config/v1"
)

// Config is how podd runs, complete and checked. Every field holds its final
// value: no later default applies unless the field says so. It is a plain
// value; whoever gets it must not write to its slices and maps.
type Config struct {
	// ManifestPaths are directories or single files, as the user wrote them
	// and cleaned. Empty: no file source.
	ManifestPaths []string
	// ManifestURLs are http or https URLs; {node} and {machineID} in them are
	// still to be replaced. Empty: no URL source.
	ManifestURLs []string
	// APIManifestDir is a directory that the Kubernetes API writes to, and whose
	// pods run, cleaned; "": it writes nothing.
	APIManifestDir string
	// URLHeader goes with every request to every one of ManifestURLs.
	URLHeader Header
	// URLHeaderFile holds more headers, one "Name: value" a line, read anew
	// before each poll so that tokens can rotate; "" for none.
	URLHeaderFile string
	// URLCAFile replaces the system's roots for ManifestURLs; "" keeps them.
	URLCAFile string
	// URLCertFile and URLKeyFile are the client certificate; both or neither.
	URLCertFile, URLKeyFile string
	// FileCheckFrequency is the rescan of ManifestPaths beside their watch.
	FileCheckFrequency time.Duration
	// HTTPCheckFrequency is the poll of ManifestURLs.
	HTTPCheckFrequency time.Duration
	// SyncFrequency is the longest a pod goes without being looked at again.
	SyncFrequency time.Duration
	// RestartRules is the feature gate ContainerRestartRules: containers of pods may
	// have a restart policy and rules of their own.
	RestartRules bool
	// Strict makes unknown and repeated manifest fields errors.
	Strict bool

	// NodeName is lower case and a DNS-1123 subdomain.
	NodeName string
	// Cloud is whose metadata service is to tell what the node is, "" for none; Named
	// says that it is not to name the node, since the user has.
	Cloud string
	Named bool
	// NodeIPs are the addresses pods see as the host's, the primary first;
	// empty: find them.
	NodeIPs []netip.Addr
	// NodeLabels are the node's, beside those that every node has.
	NodeLabels map[string]string
	// MaxStatusImages of the node's status; -1 for all.
	MaxStatusImages int
	// RootDir holds podd's state and the pods' volumes; absolute.
	RootDir string
	// RunDir holds the control socket; absolute.
	RunDir string
	// PodLogsDir holds the pods' logs; absolute.
	PodLogsDir string
	// LogMaxSize is how many bytes a container's log file may have before it is
	// put aside; less than 0 lets it grow. LogMaxFiles is how many a container
	// may have, LogEvery the longest time between two looks at one.
	LogMaxSize  int64
	LogMaxFiles int
	LogEvery    time.Duration
	// MaxPods that run at once; at least 1.
	MaxPods int
	// AsKubelet has podd stand in for a kubelet: it was called so, or is the node of a
	// cluster.
	AsKubelet bool
	// Adopt ends foreign sandboxes that hold a wanted pod's name.
	Adopt bool
	// Shutdown are the groups in which pods end when the machine shuts down, in rising
	// order; none: it waits for no pod unless podd is asked to end them.
	Shutdown []ShutdownGroup
	// RunOnce runs what the sources hold once, to completion.
	RunOnce bool

	// RuntimeEndpoint is the CRI socket as "unix:///path"; "" looks for one at
	// the well-known places.
	RuntimeEndpoint string
	// ImageEndpoint is like RuntimeEndpoint; "" means the same as that.
	ImageEndpoint string
	// RuntimeRequestTimeout bounds each CRI call but the long ones.
	RuntimeRequestTimeout time.Duration
	// CgroupDriver, "cgroupfs" or "systemd", counts only where the runtime
	// does not say what it uses itself.
	CgroupDriver string
	// CgroupRoot is the cgroup pods are placed under; "" is the root.
	CgroupRoot string
	// PodPids is how many processes a pod may have; 0 is no limit.
	PodPids int64
	// Reserved is kept from the pods: cpu, memory, ephemeral-storage and pid.
	Reserved v1.ResourceList
	// Pressure says when the node is under pressure. Memory and Nodefs of it are kept
	// from what is allocatable, too; no pod ends for any of it.
	Pressure Pressure
	// EnforceReserved limits all pods together to what is not Reserved.
	EnforceReserved bool
	// LimitedSwap gives Burstable pods their share of the machine's swap; others,
	// and without it all, get none.
	LimitedSwap bool
	// SandboxImage is never collected; "" when not told.
	SandboxImage string
	// SeccompDefault gives RuntimeDefault to whatever names no profile.
	SeccompDefault bool
	// UnsafeSysctls may be set by pods beside the safe ones; a name may end in *.
	UnsafeSysctls []string
	// RuntimeClasses are the handlers of classes that are named otherwise.
	RuntimeClasses map[string]string
	// MaxRestartPeriod caps the crash back-off; 1s to 5m.
	MaxRestartPeriod time.Duration
	// ParallelStarts bounds the pods being started at once; 0 lets podd choose.
	ParallelStarts int

	// ParallelPulls bounds the images being pulled at once; 0 for no bound.
	ParallelPulls int
	// PullQPS and PullBurst limit the rate of pulls; QPS 0 for no limit.
	PullQPS, PullBurst int
	// PullOffline says what policy Always does when no registry answers.
	PullOffline PullOffline

	// CredentialProviders are plugins that know registries' credentials, in their
	// order, each a program in CredentialProviderDir; absolute.
	CredentialProviders   []credential.CredentialProvider
	CredentialProviderDir string

	// ClusterDNS are the name servers of pods with dnsPolicy ClusterFirst.
	ClusterDNS []string
	// ClusterDomain is searched by those pods; may be "".
	ClusterDomain string
	// ResolvConf is the file the pods' DNS is made from; "" for none at all.
	ResolvConf string

	// HealthzListen is the address of /healthz as "host:port"; "" is off.
	HealthzListen string
	// ReadOnlyListen is the address of /pods and of what pods use as "host:port"; "" is off.
	ReadOnlyListen string
	// CadvisorListen is the address of cAdvisor's metrics as "host:port"; "" is off.
	CadvisorListen string

	// API is how the kubelet's API is served.
	API KubeletAPI
	// Cluster is the cluster that this machine is a node of.
	Cluster Cluster
	// Shown is what tells others how podd was started.
	Shown Shown

	// EventLog is the file that events are appended to; "" for none.
	EventLog string
	// LogFormat is "text" or "json".
	LogFormat string
	// Verbosity is klog's: 0 says what matters, 4 and above is for debugging.
	Verbosity int
}

// Shown is a configuration for others to read; nothing in it is secret.
type Shown struct {
	// Kubelet is the kubelet.config.k8s.io/v1beta1 in force, with its defaults,
	// in JSON.
	Kubelet json.RawMessage
	// Flags are those that were given, by name, with their values.
	Flags map[string]string
}

// PullOffline is what an image of pull policy Always does without a registry.
type PullOffline string

// The values of --pull-offline.
const (
	// PullStrict waits for the registry, as the kubelet does.
	PullStrict PullOffline = "strict"
	// PullUsePresent starts from an image that is present, with a Problem.
	PullUsePresent PullOffline = "use-present"
)

// What v1beta1 does not say or podd does otherwise than the kubelet.
const (
	// DefaultRootDir keeps podd clear of a kubelet on the same machine.
	DefaultRootDir = "/var/lib/podd"
	// KubeletRootDir is the default when called as "kubelet", and in a cluster.
	KubeletRootDir = "/var/lib/kubelet"
	// DefaultRunDir has the control socket.
	DefaultRunDir = "/run/podd"
	// DefaultParallelPulls applies when the user said nothing: the kubelet
	// pulls one image at a time, so one hung registry stops every other pull.
	DefaultParallelPulls = 5
)
