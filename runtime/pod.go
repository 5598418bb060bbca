// Package runtime defines the actual state: pods as a CRI runtime reports them, as
// immutable values. Package runtime/cri reads them.
package runtime

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Pod contains all sandboxes of one pod name, newest first. There are several while an
// old incarnation is being replaced, and after crashes.
type Pod struct {
	Key          types.NamespacedName
	Incarnations []Incarnation
}

// An Incarnation is one sandbox with its containers. If ID is empty, the sandbox no longer
// exists but containers of it are still listed.
type Incarnation struct {
	Sandbox
	// Containers in the order of creation, including exited ones.
	Containers []Container
}

// A Sandbox is a CRI pod sandbox.
type Sandbox struct {
	ID      string
	UID     types.UID
	Attempt uint32
	// Ready means SANDBOX_READY: its namespaces exist and containers can start.
	Ready     bool
	CreatedAt time.Time // wall clock of the runtime
	// IPs in the pod network, the primary one first; empty for host network.
	IPs         []string
	Labels      map[string]string
	Annotations map[string]string
	// Foreign reports that podd, or this instance of it, did not create the sandbox. podd
	// observes such a sandbox and never changes it, unless it adopts pods.
	Foreign bool
}

// UserIDs returns the first host UID of the sandbox's user namespace; 0 if it has none.
func (s *Sandbox) UserIDs() uint32 {
	first, err := strconv.ParseUint(s.Annotations[AnnotationUserIDs], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(first)
}

// ContainerState is the state of a container: one of CRI's, or ExitUnknown.
type ContainerState string

// The four CRI states.
const (
	Created ContainerState = "Created"
	Running ContainerState = "Running"
	Exited  ContainerState = "Exited"
	Unknown ContainerState = "Unknown"
)

// ExitUnknown is the state of a container that the runtime lists as exited, but without an
// exit code, because the query of its status failed, has not returned yet, or returned no
// code. The container does not run. Decisions that depend on its exit code must wait.
// Message is the reason why the code is unknown.
const ExitUnknown ContainerState = "ExitUnknown"

// A Container is a CRI container. Times are the runtime's wall clock, and zero if the state
// has not been reached.
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
	Reason      string // the runtime's: Completed, Error, OOMKilled, …
	Message     string
	Image       string // as the user named it, or only an ID: see ImageName
	ImageRef    string // status.containerStatuses[].imageID
	LogPath     string
	Labels      map[string]string
	Annotations map[string]string
	// User is the identity of the first process when it starts; nil if the runtime does not
	// report it.
	User *User
}

// A User is a Linux identity. It is immutable.
type User struct {
	UID, GID int64
	// Groups contains the supplemental groups in the runtime's order.
	Groups []int64
}

// Resources are the limits of a container; zero means no limit.
type Resources struct {
	CPUShares int64
	CPUQuota  int64 // µs per period
	CPUPeriod int64 // µs
	Memory    int64 // bytes
}

// Restarts returns how often a container of this name was started before in its pod: the
// restart count recorded at creation, or else Attempt. An attempt number that was skipped
// because its name was reserved counts only for Attempt.
func (c *Container) Restarts() uint32 {
	n, err := strconv.ParseUint(c.Annotations[AnnotationRestartCount], 10, 32)
	if err != nil || uint32(n) > c.Attempt {
		return c.Attempt
	}
	return uint32(n)
}

// Kind returns the kind of a container and its index among those of the same list, as
// recorded at its creation. The kind is "" if it was not recorded.
func (c *Container) Kind() (kind string, index int) {
	kind, place, _ := strings.Cut(c.Annotations[AnnotationKind], ":")
	index, err := strconv.Atoi(place)
	if err != nil {
		return kind, 0
	}
	return kind, index
}

// ImageName returns the image as the user named it. It is empty if the runtime reports
// only the ID that the container was created with, as CRI-O does.
func (c *Container) ImageName() string {
	if imageID.MatchString(c.Image) {
		return ""
	}
	return c.Image
}

// imageID matches an image ID, which CRI-O writes without the algorithm.
var imageID = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

// CutShort reports whether the start of the container was interrupted by its caller, for
// example because podd was killed. Its exit then says nothing about its program, which did
// not run.
func (c *Container) CutShort() bool {
	if c.State != Exited || !c.StartedAt.IsZero() {
		return false
	}
	// containerd 1.6 kills the program that starts its shim.
	killed := strings.Contains(c.Message, "failed to start shim") && strings.Contains(c.Message, "signal: killed")
	// A container that containerd 1.6 was creating when its caller was killed may lack the
	// sandbox's process, and use the namespaces of process 0.
	homeless := strings.Contains(c.Message, "/proc/0/ns/")
	return killed || homeless || strings.Contains(c.Message, "context canceled")
}

// A Snapshot is one observation of pods. A nil map entry means that the pod does not exist.
type Snapshot struct {
	// AsOf is the monotonic time at which the first call for it was sent. An effect that
	// ended after AsOf may be missing from it.
	AsOf time.Time
	// Pods contains the observed pods. A pod that did not change keeps its pointer.
	Pods map[types.NamespacedName]*Pod
	// Whole reports that Pods contains all pods; otherwise only the pods in its keys were
	// observed.
	Whole bool
}

// A Node is the state of the runtime as it reports it.
type Node struct {
	Name, Version string // "containerd", "v2.4.2"
	APIVersion    string // version of the CRI: "v1"
	// Reachable reports that the runtime responded to the last call.
	Reachable bool
	Ready     bool // condition RuntimeReady
	// NetworkReady is the condition NetworkReady. Pods of the pod network wait for it.
	NetworkReady   bool
	Message        string // the runtime's reason why it is not ready
	NetworkMessage string
	// CgroupDriver is "cgroupfs" or "systemd"; "" if the runtime does not report it.
	CgroupDriver string
	// Handlers has names as keys; "" is the default handler. It is nil if the runtime does
	// not list handlers. A handler without features supports none.
	Handlers map[string]Handler
	// Fine-grained supplemental groups, from CRI RuntimeFeatures.
	SupplementalGroupsPolicy bool
}

// A Handler contains the features of a runtime handler.
type Handler struct {
	UserNamespaces          bool
	RecursiveReadOnlyMounts bool
}

// Labels and annotations of everything that podd creates. The io.kubernetes ones are the
// kubelet's, which crictl, cAdvisor and log agents read.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	// LabelInstance is the random ID of the podd that owns a sandbox.
	LabelInstance = "podd.instance"

	AnnotationContainerHash             = "io.kubernetes.container.hash"
	AnnotationRestartCount              = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath    = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy  = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPreStopHandler            = "io.kubernetes.container.preStopHandler"
	AnnotationContainerPorts            = "io.kubernetes.container.ports"
	AnnotationPodDeletionGracePeriod    = "io.kubernetes.pod.deletionGracePeriod"
	AnnotationPodTerminationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
	// AnnotationStart is manifest.ContainerHash.Digits of a container. The annotation above
	// has the kubelet's own hash, so that a kubelet can take the container over.
	AnnotationStart = "podd/start"
	// AnnotationHash is manifest.Pod.Hash of the version that runs in the sandbox.
	AnnotationHash = "podd/hash"
	// AnnotationSize is manifest.ContainerHash.Size of a container or manifest.Pod.PodSize
	// of a sandbox at its creation.
	AnnotationSize = "podd/size"
	// AnnotationBackoff is the back-off step at which a container was started.
	AnnotationBackoff = "podd/backoff-step"
	// AnnotationKind is the kind of a container, "init", "sidecar", "container" or
	// "ephemeral", and its index. It is used if the manifest no longer exists.
	AnnotationKind = "podd/kind"
	// AnnotationUserIDs is the host UID of root in a sandbox with a user namespace, which
	// is the first UID of its range.
	AnnotationUserIDs = "podd/user-ids"
	// AnnotationDevices contains the IDs of a container's plugin devices by resource, as
	// JSON.
	AnnotationDevices = "podd/devices"
	// AnnotationEphemeral is the v1.EphemeralContainer from which an ephemeral container
	// was created, as JSON, because no manifest contains it.
	AnnotationEphemeral = "podd/ephemeral"
	// AnnotationGrace is the pod's grace period in seconds, on the sandbox.
	AnnotationGrace = "podd/grace"
)

// Streams are the streams of a command or container that a client attaches to.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }
