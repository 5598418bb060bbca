package config

import (
	"encoding/json"
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"
	credential "k8s.io/kubelet/config/v1"
)

// Config is the complete and validated configuration, grouped by concern. No later default
// applies to a field unless its comment says so. Callers must not modify its slices and
// maps.
type Config struct {
	Sources
	Node
	Paths
	Adoption
	Resources
	Runtime
	Images
	DNS
	Server
	ContainerLogs
	Logging

	// Cluster configures podd as a node of a cluster.
	Cluster Cluster
	// Shutdown contains the groups of a node shutdown in rising order of priority. Empty: a
	// shutdown does not wait for pods.
	Shutdown []ShutdownGroup
	// RunOnce runs the pods of the sources once, to completion.
	RunOnce bool
	// Shown is the configuration that endpoints show.
	Shown Shown
}

// Sources configures the sources of pods.
type Sources struct {
	// ManifestPaths contains directories and files, cleaned. Empty: no file source.
	ManifestPaths []string
	// ManifestURLs contains http and https URLs. {node} and {machineID} in them are replaced
	// later. Empty: no URL source.
	ManifestURLs []string
	// APIManifestDir is the directory, cleaned, that the Kubernetes API writes to and
	// podd runs pods from; "": the API is read-only.
	APIManifestDir string
	// URLHeader is sent with every request to ManifestURLs.
	URLHeader Header
	// URLHeaderFile contains more headers, one "Name: value" a line; "" for none. It is read
	// before each poll, so that tokens can be rotated.
	URLHeaderFile string
	// URLCAFile replaces the system's CAs for ManifestURLs; "" keeps them.
	URLCAFile string
	// URLCertFile and URLKeyFile are the client certificate and its key; both or neither are
	// set.
	URLCertFile, URLKeyFile string
	// FileCheckFrequency is the interval of rescans of ManifestPaths, in addition to inotify.
	FileCheckFrequency time.Duration
	// HTTPCheckFrequency is the interval between polls of ManifestURLs.
	HTTPCheckFrequency time.Duration
	// RestartRules is the feature gate ContainerRestartRules, which permits restart policies
	// and rules of single containers.
	RestartRules bool
	// Strict makes unknown and duplicate fields in manifests errors.
	Strict bool
}

// Node identifies the node.
type Node struct {
	// NodeName is lower case and a DNS-1123 subdomain. It is "" if InvalidHostname is set;
	// then a stored name or that of Cloud is used.
	NodeName string
	// InvalidHostname is the hostname if it should be NodeName but is no valid name.
	InvalidHostname string
	// Named is set if the user has set NodeName. Otherwise it is the hostname or, with
	// Cloud, the name in the metadata.
	Named bool
	// Cloud is the cloud with the metadata service that describes the node, or "".
	Cloud string
	// NodeIPs are the addresses of the host for pods, the primary one first. Empty: detect
	// them.
	NodeIPs []netip.Addr
	// NodeLabels are added to the standard labels of the node.
	NodeLabels map[string]string
	// MaxStatusImages limits the images in the node's status; -1 means no limit.
	MaxStatusImages int
	// MaxPods limits the pods that run at the same time; at least 1.
	MaxPods int
	// AsKubelet is set if podd was called as kubelet, or is the node of a cluster.
	AsKubelet bool
}

// Paths contains the directories of podd.
type Paths struct {
	// RootDir contains the state of podd and the volumes of pods; absolute.
	RootDir string
	// RunDir contains the control socket; absolute.
	RunDir string
	// PodLogsDir contains the logs of pods; absolute.
	PodLogsDir string
}

// Adoption configures which pods of others podd takes over.
type Adoption struct {
	// Adopt stops sandboxes of others that have the name of a desired pod.
	Adopt bool
	// AdoptInstances contains the IDs of instances whose root directories are lost and whose
	// pods podd adopts.
	AdoptInstances []string
}

// Resources configures the resources of the node and when it is under pressure.
type Resources struct {
	// PodPids limits the processes of a pod; 0 means no limit.
	PodPids int64
	// Reserved contains resources that pods cannot request: cpu, memory, ephemeral-storage
	// and pid.
	Reserved v1.ResourceList
	// EnforceReserved limits all pods together to the resources that are not Reserved.
	EnforceReserved bool
	// LimitedSwap lets Burstable pods use their share of the swap. Other pods use none, and
	// without LimitedSwap no pod does.
	LimitedSwap bool
	// Pressure contains the thresholds of node pressure. Memory and Nodefs also reduce the
	// allocatable resources. No pod is evicted for pressure.
	Pressure Pressure
}

// Runtime configures how pods run on the CRI runtime.
type Runtime struct {
	// RuntimeEndpoint is the CRI socket as "unix:///path"; "" means that the well-known paths
	// are tried.
	RuntimeEndpoint string
	// ImageEndpoint is like RuntimeEndpoint; "" means the same socket.
	ImageEndpoint string
	// RuntimeRequestTimeout limits CRI calls except those that may take long.
	RuntimeRequestTimeout time.Duration
	// SyncFrequency is the longest interval between syncs of a pod.
	SyncFrequency time.Duration
	// CgroupDriver is "cgroupfs" or "systemd". It is ignored if the runtime reports its
	// driver.
	CgroupDriver string
	// CgroupRoot is the parent cgroup of the pods; "" is the root.
	CgroupRoot string
	// SeccompDefault applies RuntimeDefault to containers without a seccomp profile.
	SeccompDefault bool
	// UnsafeSysctls may be set by pods in addition to the safe sysctls. A name may end in *.
	UnsafeSysctls []string
	// RuntimeClasses maps names of classes to handlers if they differ.
	RuntimeClasses map[string]string
	// MaxRestartPeriod limits the crash back-off; 1s to 5m.
	MaxRestartPeriod time.Duration
	// ParallelStarts limits the pods that start at the same time; 0 uses a default.
	ParallelStarts int
}

// Images configures pulls of images and their garbage collection.
type Images struct {
	// SandboxImage is exempt from image garbage collection; may be "".
	SandboxImage string
	// ParallelPulls limits the images that are pulled at the same time; 0 means no limit.
	ParallelPulls int
	// PullQPS and PullBurst limit the rate of pulls; QPS 0 means no limit.
	PullQPS, PullBurst int
	// PullOffline is the behavior of pull policy Always if no registry responds.
	PullOffline PullOffline
	// CredentialProviders are plugins for credentials of registries, in order. Each is a
	// program in CredentialProviderDir, which is absolute.
	CredentialProviders   []credential.CredentialProvider
	CredentialProviderDir string
}

// DNS configures name resolution in pods.
type DNS struct {
	// ClusterDNS are the name servers of pods with dnsPolicy ClusterFirst.
	ClusterDNS []string
	// ClusterDomain is the search domain of those pods; may be "".
	ClusterDomain string
	// ResolvConf is the file with the DNS configuration of the node; "" means none.
	ResolvConf string
}

// Server configures the endpoints.
type Server struct {
	// HealthzListen is the address of /healthz as "host:port"; "" disables it.
	HealthzListen string
	// ReadOnlyListen is the address of the read-only endpoint as "host:port"; "" disables it.
	ReadOnlyListen string
	// CadvisorListen is the address of cAdvisor's metrics as "host:port"; "" disables it.
	CadvisorListen string
	// API configures the kubelet API.
	API KubeletAPI
}

// ContainerLogs configures the rotation of the logs of containers.
type ContainerLogs struct {
	// LogMaxSize is the size in bytes at which a container's log is rotated; a negative value
	// disables rotation. LogMaxFiles limits the log files of a container, and LogEvery is the
	// longest interval between checks.
	LogMaxSize  int64
	LogMaxFiles int
	LogEvery    time.Duration
}

// Logging configures the log and the event log of podd.
type Logging struct {
	// LogFormat is "text" or "json".
	LogFormat string
	// Verbosity is that of klog: 0 logs warnings and important events, and 4 and above debug
	// messages.
	Verbosity int
	// EventLog is the file that events are appended to; may be "".
	EventLog string
}

// Shown is the configuration for display. It contains no secrets.
type Shown struct {
	// Kubelet is the effective kubelet.config.k8s.io/v1beta1 with defaults, as JSON.
	Kubelet json.RawMessage
	// Flags contains the flags that were set and their values.
	Flags map[string]string
}

// PullOffline is the behavior of pull policy Always without a registry.
type PullOffline string

// The values of --pull-offline.
const (
	// PullStrict waits for the registry, as the kubelet does.
	PullStrict PullOffline = "strict"
	// PullUsePresent starts from an image that is present and reports a Problem.
	PullUsePresent PullOffline = "use-present"
)

// Defaults that v1beta1 does not have, or that differ from the kubelet's.
const (
	// DefaultRootDir differs from that of a kubelet on the same host.
	DefaultRootDir = "/var/lib/podd"
	// KubeletRootDir is the default if podd is called as kubelet, or in a cluster.
	KubeletRootDir = "/var/lib/kubelet"
	// DefaultRunDir contains the control socket.
	DefaultRunDir = "/run/podd"
	// DefaultParallelPulls is more than the kubelet's default of one, with which a registry
	// that hangs stops all other pulls.
	DefaultParallelPulls = 5
)
