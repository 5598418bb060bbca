// Package runtime defines the actual state of the node: pods, containers and images as a CRI
// runtime reports them. Values of all types are immutable. Package runtime/cri gets them from the
// runtime.
package runtime

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Pod contains all sandboxes of one pod name, newest first. A pod has several sandboxes while one
// of them replaces another, and sometimes after a crash of the runtime or of podd.
type Pod struct {
	Key          types.NamespacedName
	Incarnations []Incarnation
}

// An Incarnation is one sandbox with its containers. If ID is empty, the sandbox no longer
// exists but the runtime still lists containers of the sandbox.
type Incarnation struct {
	Sandbox
	// Containers is in the order of creation and includes exited containers.
	Containers []Container
}

// A Sandbox is a CRI pod sandbox.
type Sandbox struct {
	ID      string
	UID     types.UID
	Attempt uint32
	// Ready means SANDBOX_READY: the sandbox's namespaces exist and containers can start.
	Ready     bool
	CreatedAt time.Time // time of the runtime's wall clock
	// IPs contains the addresses in the pod network, the primary one first. It is empty if
	// the pod uses the host network.
	IPs []string
	// MappedIDs contains the host IDs in the sandbox's user namespace as the runtime reports them,
	// without duplicates. It is nil if there is no user namespace, or if the runtime has not reported
	// the status of the sandbox.
	MappedIDs   []IDRange
	Labels      map[string]string
	Annotations map[string]string
	// Foreign reports whether another program, or another instance of podd, created the
	// sandbox. podd observes a foreign sandbox and never changes it, unless podd adopts it.
	Foreign bool
}

// HostIDs returns the host IDs that podd recorded in the annotations for the sandbox's user
// namespace. It returns the zero IDRange if the sandbox has no user namespace or is foreign. The
// annotations of a foreign sandbox are not trusted, because a kubelet copies them from the pod; use
// MappedIDs.
func (s *Sandbox) HostIDs() IDRange {
	if s.Foreign {
		return IDRange{}
	}
	firstUID, err := strconv.ParseUint(s.Annotations[AnnotationFirstHostUID], 10, 32)
	if err != nil {
		return IDRange{}
	}
	length := uint64(DefaultIDsPerPod)
	if text, ok := s.Annotations[AnnotationHostIDCount]; ok {
		if length, err = strconv.ParseUint(text, 10, 32); err != nil {
			return IDRange{}
		}
	}
	if r := (IDRange{uint32(firstUID), uint32(length)}); r.IsValid() {
		return r
	}
	return IDRange{}
}

// ContainerState is the state of a container: a state of CRI, or ExitCodeUnknown.
type ContainerState string

// The four CRI states.
const (
	Created ContainerState = "Created"
	Running ContainerState = "Running"
	Exited  ContainerState = "Exited"
	Unknown ContainerState = "Unknown"
)

// ExitCodeUnknown is the state of a container that the runtime lists as exited, but with an
// unknown exit code. The code is unknown while the query of the container's status has
// failed, has not returned yet, or returned no code. The container is not running.
// Decisions that depend on the exit code must wait. Message contains the reason why the
// code is unknown.
const ExitCodeUnknown ContainerState = "ExitUnknown"

// A Container is a CRI container. Its times are from the runtime's wall clock. StartedAt is
// zero before the start, FinishedAt before the exit.
type Container struct {
	ID        string
	SandboxID string
	Name      string
	Attempt   uint32
	State     ContainerState
	CreatedAt time.Time
	StartedAt time.Time
	// FinishedAt, ExitCode, Reason and Message are set when State is Exited.
	FinishedAt  time.Time
	ExitCode    int32
	Reason      string // set by the runtime: Completed, Error, OOMKilled, …
	Message     string
	Image       string // name in the pod spec, or only an ID; see ImageName
	ImageRef    string // shown as status.containerStatuses[].imageID
	LogPath     string
	Labels      map[string]string
	Annotations map[string]string
	// User is the user and groups of the first process when the process starts. User is nil
	// if the runtime does not report it.
	User *User
}

// A User is the identity of a Linux process. It is immutable.
type User struct {
	UID, GID int64
	// Groups contains the supplemental groups in the order in which the runtime reports
	// them.
	Groups []int64
}

// Resources are the limits of a container; zero means no limit.
type Resources struct {
	CPUShares        int64
	CPUQuota         int64 // µs per period
	CPUPeriod        int64 // µs
	MemoryLimitBytes int64 // bytes
}

// Restarts returns how often a container of this name was started before in its pod. This is the
// restart count recorded when the container was created, or Attempt if no valid count was recorded.
// Attempt can be higher than the count, because an attempt number is skipped if its container name
// is reserved.
func (c *Container) Restarts() uint32 {
	n, err := strconv.ParseUint(c.Annotations[AnnotationRestartCount], 10, 32)
	if err != nil || uint32(n) > c.Attempt {
		return c.Attempt
	}
	return uint32(n)
}

// PodRestarts returns how often all containers of the pod had been restarted together before the
// container was created; see AnnotationPodRestarts.
func (c *Container) PodRestarts() uint32 {
	text, ok := c.Annotations[AnnotationPodRestarts]
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// Kind returns the kind of a container and the container's index in its list of the pod
// spec, as recorded at its creation. kind is "" if it was not recorded.
func (c *Container) Kind() (kind string, index int) {
	kind, number, _ := strings.Cut(c.Annotations[AnnotationContainerKind], ":")
	index, err := strconv.Atoi(number)
	if err != nil {
		return kind, 0
	}
	return kind, index
}

// ImageName returns the image name of the pod spec. It returns "" if the runtime reports only the
// image ID from which the container was created, as CRI-O does.
func (c *Container) ImageName() string {
	if isImageID(c.Image) {
		return ""
	}
	return c.Image
}

// isImageID reports whether image is an image ID: the digits of a SHA-256 digest. CRI-O omits the
// algorithm "sha256:".
func isImageID(image string) bool {
	digits := strings.TrimPrefix(image, "sha256:")
	return len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// WasStartInterrupted reports whether the container exited because its start was interrupted,
// for example because podd was killed. The container's program did not run, so the exit
// code is not the program's.
func (c *Container) WasStartInterrupted() bool {
	if c.State != Exited || !c.StartedAt.IsZero() {
		return false
	}
	// The client has disconnected, and containerd 1.6 has killed the command that starts the
	// container's shim.
	isShimKilled := strings.Contains(c.Message, "failed to start shim") && strings.Contains(c.Message, "signal: killed")
	// If containerd 1.6 was creating the container when the client was killed, the process
	// of the sandbox may be missing. runc then tries to join the namespaces of process 0.
	isSandboxProcessMissing := strings.Contains(c.Message, "/proc/0/ns/")
	return isShimKilled || isSandboxProcessMissing || strings.Contains(c.Message, "context canceled")
}

// A Snapshot is one observation of pods. If Pods contains a key with a nil value, that pod
// does not exist.
type Snapshot struct {
	// AsOf is the monotonic time at which the first call of the observation was sent. The changes
	// of an effect that ended after AsOf may be missing from the snapshot.
	AsOf time.Time
	// Pods contains the observed pods. If a pod did not change since the previous snapshot,
	// its pointer is the same.
	Pods map[types.NamespacedName]*Pod
	// IsComplete reports whether all pods were observed. If it is false, only the pods whose keys
	// are in Pods were observed.
	IsComplete bool
}

// A Node is the state that the runtime reports about itself.
type Node struct {
	Name, Version string // "containerd", "v2.4.2"
	APIVersion    string // version of the CRI: "v1"
	// Reachable reports whether the runtime responded to the last call.
	Reachable bool
	Ready     bool // the condition RuntimeReady
	// NetworkReady is the condition NetworkReady. Pods that use the pod network wait until
	// it is true.
	NetworkReady   bool
	Message        string // why the runtime is not ready
	NetworkMessage string // why the network is not ready, without the remedy
	NetworkRemedy  string // "" if it is unknown
	// CgroupDriver is "cgroupfs" or "systemd", or "" if the runtime does not report it.
	CgroupDriver string
	// Handlers contains the runtime handlers by name; the default handler has the name "".
	// It is nil if the runtime does not list its handlers.
	Handlers map[string]Handler
	// SupplementalGroupsPolicy reports whether the runtime supports the pod field
	// supplementalGroupsPolicy. The source is the CRI message RuntimeFeatures.
	SupplementalGroupsPolicy bool
}

// NetworkProblem returns NetworkMessage with NetworkRemedy; "" if both are unknown.
func (n Node) NetworkProblem() string {
	if n.NetworkRemedy == "" {
		return n.NetworkMessage
	}
	return n.NetworkMessage + "; " + n.NetworkRemedy
}

// Settings contains the part of the runtime's configuration that the runtime reports only in its
// verbose status. A field is empty if the runtime does not report it.
type Settings struct {
	SandboxImage string // name of the sandbox image; containerd 2 does not report it
	// CNIConfDir is the directory of the CNI configurations, CNIPluginDirs are the directories of
	// the plugins, and CNIPlugins contains the names of the plugins in the active
	// configurations. CRI-O reports none of these fields.
	CNIConfDir    string
	CNIPluginDirs []string
	CNIPlugins    []string
}

// A Handler contains the features that a runtime handler supports.
type Handler struct {
	UserNamespaces          bool
	RecursiveReadOnlyMounts bool
}

// Labels and annotations of the sandboxes and containers that podd creates. The keys that begin
// with io.kubernetes are those of the kubelet, because crictl, cAdvisor and log agents read them.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	// LabelInstance contains the random ID of the podd instance that owns a sandbox.
	LabelInstance = "podd.instance"

	AnnotationContainerHash             = "io.kubernetes.container.hash"
	AnnotationRestartCount              = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath    = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy  = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPreStopHandler            = "io.kubernetes.container.preStopHandler"
	AnnotationContainerPorts            = "io.kubernetes.container.ports"
	AnnotationPodDeletionGracePeriod    = "io.kubernetes.pod.deletionGracePeriod"
	AnnotationPodTerminationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
	// AnnotationStartHash contains the result of manifest.ContainerHash.StartHashPrefix for a
	// container. AnnotationContainerHash contains the kubelet's own hash, so that a kubelet can
	// adopt the container.
	AnnotationStartHash = "podd/start"
	// AnnotationPodHash contains manifest.Pod.Hash of the pod version that runs in the sandbox.
	AnnotationPodHash = "podd/hash"
	// AnnotationSize contains the resources at creation: manifest.ContainerHash.Resources of a
	// container, or the result of manifest.Pod.PodSize for a sandbox.
	AnnotationSize = "podd/size"
	// AnnotationBackoffStep contains the back-off step with which a container was started.
	AnnotationBackoffStep = "podd/backoff-step"
	// AnnotationPodRestarts contains the number of times that the restart rule
	// RestartAllContainers had restarted all containers of the pod before this container was
	// created. It is omitted if the number is 0.
	AnnotationPodRestarts = "podd/pod-restarts"
	// AnnotationContainerKind contains the kind of a container ("init", "sidecar", "container" or
	// "ephemeral") and its index. podd needs the annotation when the manifest no longer
	// exists.
	AnnotationContainerKind = "podd/kind"
	// AnnotationFirstHostUID contains the first host UID that a sandbox's user namespace maps.
	// It is the host UID of root in the namespace.
	AnnotationFirstHostUID = "podd/user-ids"
	// AnnotationHostIDCount contains the number of host IDs that a sandbox's user namespace
	// maps. It is omitted if the number is DefaultIDsPerPod.
	AnnotationHostIDCount = "podd/user-id-count"
	// AnnotationDevices contains the IDs of a container's device plugin devices by resource
	// name, as JSON.
	AnnotationDevices = "podd/devices"
	// AnnotationPodDevices contains the IDs of the device plugin devices of a pod by container and
	// resource name, as JSON. It is set on the sandbox, because the devices are allocated before the
	// sandbox is created.
	AnnotationPodDevices = "podd/pod-devices"
	// AnnotationEphemeralContainer contains the v1.EphemeralContainer from which an ephemeral
	// container was created, as JSON. No manifest contains it.
	AnnotationEphemeralContainer = "podd/ephemeral"
	// AnnotationGracePeriod contains the pod's termination grace period in seconds. It is set on
	// the sandbox.
	AnnotationGracePeriod = "podd/grace"
)

// Streams selects the standard streams of a command or container that a client attaches to.
// TTY means that the process has a terminal.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }
