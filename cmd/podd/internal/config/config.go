package config

import (
	"net/netip"
	"time"

	"podd/reconcile/eviction/pressure"

	v1 "k8s.io/api/core/v1"
	credential "k8s.io/kubelet/config/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/gc"
	"podd/reconcile/pull/verify"
)

// Config is the complete and validated configuration, grouped by concern. Defaults have been
// applied unless the comment of a field states otherwise. Callers must not modify the slices
// and maps.
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
	// Shutdown contains the pod groups of a node shutdown in ascending order of priority. If it
	// is empty, a node shutdown does not wait for pods.
	Shutdown []ShutdownGroup
	// Tracing configures traces; nil disables them.
	Tracing *Tracing
	// RunOnce is set if podd runs the pods of the sources once, to completion, and exits.
	RunOnce bool
	// RedactedConfig is the configuration that the endpoints /configz and /flagz show.
	RedactedConfig RedactedConfig
}

// Sources configures the sources of pods.
type Sources struct {
	// ManifestPaths contains the cleaned paths of manifest directories and files. If it is
	// empty, no pods are read from files.
	ManifestPaths []string
	// ManifestURLs contains http and https URLs of manifests. The caller replaces {node} by the
	// node name and {machineID} by the machine ID. If it is empty, no pods are read from URLs.
	ManifestURLs []string
	// APIManifestDir is the cleaned path of the directory to which podd's own Kubernetes API writes
	// manifests. podd runs the pods in this directory. "" means that the API is read-only.
	APIManifestDir string
	// URLHeader is sent with every request to ManifestURLs.
	URLHeader Header
	// URLHeaderFile is a file with additional headers, one "Name: value" per line. "" means that
	// there is no such file. The file is read before each poll, so that tokens can be rotated.
	URLHeaderFile string
	// URLCAFile is the file with the CA certificates that verify the servers of ManifestURLs.
	// "" means the CA certificates of the system.
	URLCAFile string
	// URLCertFile and URLKeyFile are the client certificate and its key; both or neither are
	// set.
	URLCertFile, URLKeyFile string
	// FileCheckFrequency is the interval of rescans of ManifestPaths, in addition to inotify.
	FileCheckFrequency time.Duration
	// HTTPCheckFrequency is the interval between polls of ManifestURLs.
	HTTPCheckFrequency time.Duration
	// Strict is set if unknown and duplicate fields in manifests are errors.
	Strict bool
}

// Node identifies the node.
type Node struct {
	// NodeName is a DNS-1123 subdomain in lower case. It is "" if InvalidHostname is set. In
	// this case the caller uses a stored name or the name in the metadata of Cloud.
	NodeName string
	// InvalidHostname is the hostname of this host if the user has not set a node name and the
	// hostname is not a valid node name. Otherwise it is "".
	InvalidHostname string
	// NodeNameSetByUser is set if NodeName is the value of --hostname-override. Otherwise
	// NodeName is the hostname.
	NodeNameSetByUser bool
	// Cloud is the name of the cloud with the metadata service that describes the node, or "".
	Cloud string
	// NodeIPs are the addresses of the node, the primary address first. If there are none, the
	// caller detects the addresses.
	NodeIPs []netip.Addr
	// NodeLabels are added to the standard labels of the node.
	NodeLabels map[string]string
	// MaxStatusImages is the maximum number of images in the node's status; -1 means no limit.
	MaxStatusImages int
	// MaxPods is the maximum number of pods that run at the same time. With 0, no pod starts.
	MaxPods int
	// PodsPerCore limits the number of pods further, to this number for each CPU of the host; 0
	// means no such limit.
	PodsPerCore int
	// ActsAsKubelet is set if podd was called as kubelet or runs as a node of a cluster.
	ActsAsKubelet bool
	// HidesUserNamespace is set if the Node does not report whether podd runs in a user namespace.
	HidesUserNamespace bool
}

// Paths contains the directories of podd.
type Paths struct {
	// RootDir is the absolute path of the directory with podd's state and the volumes of pods.
	RootDir string
	// RunDir is the absolute path of the directory with the control socket.
	RunDir string
	// PodLogsDir is the absolute path of the directory with the logs of pods.
	PodLogsDir string
	// LockFile is the absolute path of a file that podd locks while it runs. "" means that there is
	// none.
	LockFile string
	// ExitOnLockContention is set if podd exits when another process opens or removes LockFile.
	ExitOnLockContention bool
}

// Adoption configures which sandboxes podd takes over from a kubelet or another podd instance.
type Adoption struct {
	// Adopt is set if podd may stop a sandbox that it has not created and that has the name of a
	// desired pod. If Adopt is not set, the desired pod waits. If Adopt is set, podd also removes the
	// logs, the links to logs and the cgroups of unknown pods, and kills the processes in these cgroups.
	Adopt bool
	// AdoptInstances contains the IDs of podd instances with lost root directories. podd
	// adopts the pods of these instances.
	AdoptInstances []string
}

// Resources configures the allocatable resources and the pressure conditions of the node.
type Resources struct {
	// PodPidsLimit is the maximum number of processes of a pod; 0 means no limit.
	PodPidsLimit int64
	// Reserved contains the amounts of cpu, memory, ephemeral-storage and pid that are reserved
	// for the system and cannot be requested by pods.
	Reserved v1.ResourceList
	// EnforceReserved is set if all pods together are limited to the resources that are not in
	// Reserved. Otherwise they are limited to the capacity of the node. These limits are set in the
	// cgroup that contains the cgroups of all pods.
	EnforceReserved bool
	// ReservedCgroups contains the cgroups that are limited to the resources that are reserved for
	// them.
	ReservedCgroups []ReservedCgroup
	// EnableLimitedSwap is set if Burstable pods use swap in proportion to their memory requests.
	// All other pods use no swap. If EnableLimitedSwap is not set, no pod uses swap.
	EnableLimitedSwap bool
	// ReserveMemoryRequests is set if the memory requests of pods are protected from reclaim
	// (memoryReservationPolicy TieredReservation). It has no effect on cgroup v1.
	ReserveMemoryRequests bool
	// MemoryThrottlingFactor determines the use of memory above which a container is throttled: its
	// request plus this part of the difference between its limit and its request. 0 means that no
	// container is throttled. It has no effect on cgroup v1.
	MemoryThrottlingFactor float64
	// OOMScoreAdj is the oom_score_adj of podd itself; -1000 to 1000.
	OOMScoreAdj int
	// MaxOpenFiles is the maximum number of files that podd itself may open.
	MaxOpenFiles int64
	// OwnCgroup is the cgroup to which podd moves itself; "" means that podd stays in its cgroup.
	OwnCgroup string
	// SystemCgroup is the cgroup to which podd moves all processes of the root cgroup; "" means that
	// podd does not move them.
	SystemCgroup string
	// RuntimeCgroup is the cgroup of the container runtime, which podd measures; "" if it is unknown.
	RuntimeCgroup string
	// KernelParameters determines what podd does if kernel parameters differ from the values that the
	// kubelet requires.
	KernelParameters KernelParameterPolicy
	// IgnoreEvictionInAllocatable is set if the thresholds of Eviction do not reduce the allocatable
	// resources.
	IgnoreEvictionInAllocatable bool
	// HugePagesAvailable is set if the node's huge pages count as available memory, for evictions and in
	// /stats/summary.
	HugePagesAvailable bool
	// DisableMemoryNotifications is set if podd detects a lack of memory only with its periodic checks,
	// and not with notifications of the kernel.
	DisableMemoryNotifications bool
	// SingleProcessOOMKill is set if an out-of-memory kill ends one process and not all processes of
	// the container. It has no effect on cgroup v1, where a kill always ends one process.
	SingleProcessOOMKill bool
	// DisableCPUQuota is set if the CPU limits of containers and pods are not enforced.
	DisableCPUQuota bool
	// CPUQuotaPeriod is the period in which a container may use its quota of CPU time.
	CPUQuotaPeriod time.Duration
	// WarnsCgroupV1 is set if the host uses cgroup v1 and failCgroupV1 is not set. Since Kubernetes
	// 1.35 the kubelet does not start in this case.
	WarnsCgroupV1 bool
	// Eviction contains the thresholds below which podd evicts pods. The hard thresholds of
	// memory.available and nodefs.available also reduce the allocatable resources, unless
	// IgnoreEvictionInAllocatable is set.
	Eviction pressure.Policy
}

// Runtime configures how pods run on the CRI runtime.
type Runtime struct {
	// RuntimeEndpoint is the socket of the CRI runtime service as "unix:///path". If it is "",
	// the caller tries the default sockets of containerd and CRI-O.
	RuntimeEndpoint string
	// ImageEndpoint is the socket of the CRI image service as "unix:///path". "" means
	// RuntimeEndpoint.
	ImageEndpoint string
	// PodCIDR contains one or two address ranges of pods, separated by a comma. podd sends them to the
	// runtime, unless the Node in the cluster has address ranges. "" means that there are none.
	PodCIDR string
	// RuntimeRequestTimeout is the timeout of CRI calls. It does not apply to calls that may
	// take longer, such as PullImage.
	RuntimeRequestTimeout time.Duration
	// SyncFrequency is the maximum interval between syncs of a pod.
	SyncFrequency time.Duration
	// CgroupDriver is "cgroupfs" or "systemd". It is used only if the runtime does not report
	// its cgroup driver.
	CgroupDriver string
	// ConfiguredCgroupDriver is CgroupDriver if the user has set it, and "" if it is the default.
	ConfiguredCgroupDriver string
	// IDsPerPod is the number of user and group IDs of a pod with a user namespace, a multiple of
	// 65536.
	IDsPerPod uint32
	// DisablePodCgroups is set if podd creates no cgroups of pods and QoS classes. The runtime then
	// chooses the cgroups of containers, and CgroupRoot has no effect.
	DisablePodCgroups bool
	// CgroupRoot is the parent cgroup of the pods; "" means the root cgroup.
	CgroupRoot string
	// SeccompDefault is set if containers without a seccomp profile run with RuntimeDefault.
	SeccompDefault bool
	// SELinuxMountOnlySinglePod restricts mounts with SELinux labels to volumes whose only access mode
	// is ReadWriteOncePod.
	SELinuxMountOnlySinglePod bool
	// UnsafeSysctls contains the names of the unsafe sysctls that pods may set. A name may end
	// in *, as in kernel.msg*.
	UnsafeSysctls []string
	// DefaultSysctls contains the sysctls that are set in each pod, unless the pod sets them or uses
	// the host's namespace for them. The names have dots between their parts.
	DefaultSysctls map[string]string
	// RuntimeClasses maps the names of RuntimeClasses to handlers. The handler of a class that
	// is not in the map has the name of the class.
	RuntimeClasses map[string]string
	// MaxRestartPeriod is the maximum crash back-off; 1s to 5m.
	MaxRestartPeriod time.Duration
	// MaxDeadPerContainer is the maximum number of exited containers that remain of each container,
	// at least 1; -1 means that there is no maximum.
	MaxDeadPerContainer int
	// MaxDeadContainers is the maximum number of dead containers that remain of all pods together:
	// exited ones, and created ones that were not started. -1 means that there is no maximum.
	MaxDeadContainers int
	// MinDeadContainerAge is the minimum age of a dead container that is removed. Younger
	// containers do not count towards the maximums.
	MinDeadContainerAge time.Duration
	// MaxParallelStarts is the maximum number of pods that start at the same time. If it is 0, podd
	// adapts the number to the speed at which pods start.
	MaxParallelStarts int
}

// Images configures pulls of images and their garbage collection.
type Images struct {
	// SandboxImage is the name of an image that is never removed by garbage collection, or "".
	SandboxImage string
	// MaxParallelPulls is the maximum number of parallel image pulls; 0 means no limit.
	MaxParallelPulls int
	// ImageGC contains the thresholds of image garbage collection. LowPercent is less than
	// HighPercent, and MaxAge is 0 or greater than MinAge.
	ImageGC gc.Policy
	// PullQPS is the maximum number of image pulls per second; 0 means no limit. PullBurst is the
	// maximum number of pulls at once.
	PullQPS, PullBurst int
	// OfflinePullPolicy is the behavior of imagePullPolicy Always if no registry responds.
	OfflinePullPolicy OfflinePullPolicy
	// CredentialVerification decides for which images the credentials of pods are verified. If it is
	// nil, a pod may use every image that is on the node.
	CredentialVerification *verify.Policy
	// CredentialProviders contains the credential provider plugins in the order of the
	// configuration.
	CredentialProviders []credential.CredentialProvider
	// CredentialProviderDir is the absolute path of the directory with the programs of
	// CredentialProviders.
	CredentialProviderDir string
	// CredentialProviderHash is the kubelet's hash of the files with the configuration of
	// CredentialProviders, such as "sha256:0123…"; "" without providers.
	CredentialProviderHash string
}

// DNS configures name resolution in pods.
type DNS struct {
	// ClusterDNS are the name servers of pods with dnsPolicy ClusterFirst.
	ClusterDNS []string
	// ClusterDomain is the search domain of pods with dnsPolicy ClusterFirst; may be "".
	ClusterDomain string
	// ResolvConf is the file with the DNS configuration of the node. "" means that pods get no
	// DNS configuration from the node.
	ResolvConf string
}

// Server configures the endpoints.
type Server struct {
	// HealthzAddress is the address of /healthz as "host:port"; "" disables it.
	HealthzAddress string
	// ReadOnlyAddress is the address of the read-only endpoint as "host:port"; "" disables it.
	ReadOnlyAddress string
	// CadvisorAddress is the address of cAdvisor's metrics as "host:port"; "" disables it.
	CadvisorAddress string
	// DisablePodsAPI is set if podd does not serve the kubelet's gRPC API of pods on a Unix socket.
	DisablePodsAPI bool
	// API configures the kubelet API.
	API KubeletAPI
	// ProfileContention is set if the handlers of pprof in the kubelet API also show where
	// goroutines wait for each other. It is not set if these handlers are disabled.
	ProfileContention bool
}

// ContainerLogs configures the rotation of the logs of containers.
type ContainerLogs struct {
	// LogMaxSize is the size in bytes at which a container's log is rotated. A negative value
	// disables rotation.
	LogMaxSize int64
	// LogMaxFiles is the maximum number of log files of a container.
	LogMaxFiles int
	// LogWorkers is the maximum number of container logs that are rotated at the same time; at least 1.
	LogWorkers int
	// LogCheckInterval is the interval at which the sizes of logs are checked.
	LogCheckInterval time.Duration
}

// Logging configures the log and the event log of podd.
type Logging struct {
	// LogFormat is "text" or "json".
	LogFormat string
	// Verbosity is the log level of klog. At 0, podd logs warnings and important events; at 4
	// and above, it also logs debug messages.
	Verbosity int
	// FileVerbosity contains the log levels of source files of podd that differ from Verbosity. The
	// first entry that matches a file is used.
	FileVerbosity []FileVerbosity
	// SplitStream is set if the log is written to standard output, except warnings and errors, which
	// are written to standard error. It has no effect with RunOnce.
	SplitStream bool
	// EventLog is the file to which events are appended, or "".
	EventLog string
}

// KernelParameterPolicy determines what podd does with kernel parameters at its start.
type KernelParameterPolicy int

const (
	// KeepKernelParameters neither checks nor changes kernel parameters.
	KeepKernelParameters KernelParameterPolicy = iota
	// SetKernelParameters changes the kernel parameters that differ from the values that the kubelet
	// requires (protectKernelDefaults is false).
	SetKernelParameters
	// CheckKernelParameters makes podd exit if a kernel parameter differs (protectKernelDefaults is
	// true).
	CheckKernelParameters
)

// RedactedConfig is the effective configuration with all secrets masked.
type RedactedConfig struct {
	// Kubelet is the KubeletConfiguration, including defaults. It is encoded only when a client
	// requests it, because package encoding/json then caches 80 kB about its types.
	Kubelet *kubelet.KubeletConfiguration
	// Flags returns a new map from the names of all flags to their values in effect. It collects the
	// values by reflection, and few clients request them. It is safe for concurrent use.
	Flags func() map[string]string `json:"-"`
}

// OfflinePullPolicy is the behavior of imagePullPolicy Always if no registry responds.
type OfflinePullPolicy string

// The values of --pull-offline.
const (
	// PullStrict retries until the registry responds, as the kubelet does.
	PullStrict OfflinePullPolicy = "strict"
	// PullUsePresent starts the container with the image on the node and shows a problem of the
	// pod.
	PullUsePresent OfflinePullPolicy = "use-present"
)

// These are the defaults of settings that v1beta1 does not contain, or for which the kubelet has
// another default.
const (
	// defaultRootDir is the default root directory. It differs from KubeletRootDir, so that podd
	// and a kubelet can run on one host.
	defaultRootDir = "/var/lib/podd"
	// KubeletRootDir is the default root directory if podd is called as kubelet or runs in a
	// cluster.
	KubeletRootDir = "/var/lib/kubelet"
	// DefaultRunDir is the directory of the control socket.
	DefaultRunDir = "/run/podd"
	// defaultMaxParallelPulls is the maximum number of parallel image pulls. The kubelet pulls one
	// image at a time by default, so a registry that does not respond delays all other pulls.
	defaultMaxParallelPulls = 5
	// defaultLogWorkers is the maximum number of containers with logs that are rotated at the same
	// time. The kubelet rotates one log at a time by default, so a runtime that does not respond delays
	// all other logs. Each rotation uses two file descriptors.
	defaultLogWorkers = 256
)
