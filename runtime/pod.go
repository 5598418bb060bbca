// Package runtime is what does run: pods as a CRI runtime reports them, as
// immutable values. Package runtime/cri fetches them.
package runtime

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Pod is every sandbox of one name, newest first. Several exist while an old
// incarnation is being replaced, and after crashes.
type Pod struct {
	Key          types.NamespacedName
	Incarnations []Incarnation
}

// Incarnation is one sandbox with its containers. The zero ID means that the
// sandbox is gone but containers of it are still listed.
type Incarnation struct {
	Sandbox
	// Containers in order of creation, dead ones included.
	Containers []Container
}

// Sandbox is a CRI pod sandbox.
type Sandbox struct {
	ID      string
	UID     types.UID
	Attempt uint32
	// Ready is SANDBOX_READY: its namespaces live and containers can start.
	Ready     bool
	CreatedAt time.Time // wall clock of the runtime
	// IPs of the pod network, the primary one first; empty for host network.
	IPs            []string
	RuntimeHandler string
	Labels         map[string]string
	Annotations    map[string]string
	// Foreign says that another instance, or no podd, made it. Such a sandbox
	// is looked at and never touched, unless a podd that adopts takes it over.
	Foreign bool
}

// UserIDs is the first of the node's ids that the sandbox's user namespace has;
// 0: it has none.
func (s *Sandbox) UserIDs() uint32 {
	first, err := strconv.ParseUint(s.Annotations[AnnotationUserIDs], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(first)
}

// ContainerState is the CRI state of a container.
type ContainerState string

// The four CRI states.
const (
	Created ContainerState = "Created"
	Running ContainerState = "Running"
	Exited  ContainerState = "Exited"
	Unknown ContainerState = "Unknown"
)

// Container is a CRI container. Times are the runtime's wall clock and zero
// where the state has not been reached.
type Container struct {
	ID        string
	SandboxID string
	Name      string
	Attempt   uint32
	State     ContainerState
	CreatedAt time.Time
	StartedAt time.Time
	// FinishedAt, ExitCode, Reason and Message are set once Exited.
	FinishedAt  time.Time
	ExitCode    int32
	Reason      string // the runtime's: Completed, Error, OOMKilled, …
	Message     string
	Image       string // as the user named it
	ImageRef    string // status.containerStatuses[].imageID
	LogPath     string
	Labels      map[string]string
	Annotations map[string]string
}

// Resources are what a container may use; zero is no limit.
type Resources struct {
	CPUShares int64
	CPUQuota  int64 // µs a period
	CPUPeriod int64 // µs
	Memory    int64 // bytes
}

// CutShort says that a start was given up by its caller, as when podd is killed
// in the middle of it: the container's end says nothing of its program, which
// did not run or hardly.
func (c *Container) CutShort() bool {
	if c.State != Exited || !c.StartedAt.IsZero() {
		return false
	}
	// containerd 1.6 kills the program that starts its shim.
	killed := strings.Contains(c.Message, "failed to start shim") && strings.Contains(c.Message, "signal: killed")
	// What containerd 1.6 was making when its caller was killed may not know its
	// sandbox's process, and asks for the namespaces of process 0.
	homeless := strings.Contains(c.Message, "/proc/0/ns/")
	return killed || homeless || strings.Contains(c.Message, "context canceled")
}

// Snapshot is one observation of pods. A nil map entry means: seen, and gone.
type Snapshot struct {
	// AsOf is the monotonic moment the first call behind it was sent: anything
	// that an effect finished after AsOf may be missing from it.
	AsOf time.Time
	// Pods observed. A pod that did not change keeps its pointer.
	Pods map[types.NamespacedName]*Pod
	// Whole says that Pods is everything there is; otherwise it speaks only of
	// its keys.
	Whole bool
}

// Node is what the runtime says of itself.
type Node struct {
	Name, Version string // "containerd", "v2.4.2"
	APIVersion    string // of the CRI: "v1"
	// Reachable says that the last call was answered.
	Reachable bool
	Ready     bool // condition RuntimeReady
	// NetworkReady is condition NetworkReady; pods of the pod network wait.
	NetworkReady   bool
	Message        string // why not ready, in the runtime's words
	NetworkMessage string
	// CgroupDriver is "cgroupfs" or "systemd"; "" when the runtime does not say.
	CgroupDriver string
	// Handlers by name; "" is the default one. Nil when the runtime does not list
	// them; one that says nothing of features serves none.
	Handlers map[string]Handler
	// Events says that GetContainerEvents is served.
	Events bool
	// Fine-grained supplemental groups, CRI RuntimeFeatures.
	SupplementalGroupsPolicy bool
}

// Handler is one runtime handler's features.
type Handler struct {
	UserNamespaces          bool
	RecursiveReadOnlyMounts bool
}

// Labels and annotations on everything podd makes; the io.kubernetes ones are
// the kubelet's, which crictl, cAdvisor and log agents read.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	// LabelInstance holds the random id of the podd that owns a sandbox.
	LabelInstance = "podd.instance"

	AnnotationContainerHash             = "io.kubernetes.container.hash"
	AnnotationRestartCount              = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath    = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy  = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPreStopHandler            = "io.kubernetes.container.preStopHandler"
	AnnotationContainerPorts            = "io.kubernetes.container.ports"
	AnnotationPodDeletionGracePeriod    = "io.kubernetes.pod.deletionGracePeriod"
	AnnotationPodTerminationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
	// AnnotationStart holds the digits of manifest.ContainerHash.Start on a container;
	// the kubelet's own hash is what a kubelet finds there that comes after.
	AnnotationStart = "podd/start"
	// AnnotationHash holds manifest.Pod.Hash of the version the sandbox runs.
	AnnotationHash = "podd/hash"
	// AnnotationSize holds manifest.ContainerHash.Size on a container and
	// manifest.Pod.PodSize on a sandbox, as it was made.
	AnnotationSize = "podd/size"
	// AnnotationBackoff holds the back-off step a container was started at.
	AnnotationBackoff = "podd/backoff-step"
	// AnnotationKind tells init, sidecar, regular and ephemeral containers apart when
	// the manifest is gone: "init", "sidecar", "container" or "ephemeral", and the
	// order.
	AnnotationKind = "podd/kind"
	// AnnotationUserIDs holds, on the sandbox of a pod with a user namespace, the
	// node's id that is its root's: the first of those it has.
	AnnotationUserIDs = "podd/user-ids"
	// AnnotationDevices holds, on a container with devices of plugins, their IDs by
	// resource as JSON.
	AnnotationDevices = "podd/devices"
	// AnnotationEphemeral holds, on an ephemeral container, the v1.EphemeralContainer
	// that it was made from, as JSON: it is in no manifest.
	AnnotationEphemeral = "podd/ephemeral"
	// AnnotationGrace holds the pod's grace in seconds on the sandbox.
	AnnotationGrace = "podd/grace"
)

// Streams are those of a command or container that a client takes part in.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }
