// Package status computes the v1.PodStatus of a pod.
//
//	desired pod ┐
//	observed    ├─▶ Facts ─▶ Compute ─▶ v1.PodStatus ─▶ podd ps, /pods, kubectl
//	recorded    ┘
//
// Compute is pure: it uses no clock and no I/O. It does not modify its input, and the result shares
// no memory with the input. The status is that of the kubelet of Kubernetes, including its
// reasons and messages. Unlike a kubelet's status, podd's status contains the addresses even
// without a cluster. Package server/kube/table derives the columns of a listing from the status.
//
// An ephemeral container has a status like other containers, but does not affect the status of the
// pod. An ephemeral container that the runtime no longer lists keeps its last status, because it is
// never restarted.
//
// Two properties avoid needless updates for clients that watch a status. Compute is idempotent: if
// Previous is the result of Compute for the same other facts, Compute returns Previous. Times are
// whole seconds. A time changes only if the state that it belongs to changes.
package status

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/device/allocation"
	"podd/runtime"
)

// Facts are the input of Compute.
type Facts struct {
	Pod *manifest.Pod // required
	// Allocated is Pod with the allocated resources of its containers, and Actual is Pod with
	// their actual resources; nil means the resources of Pod. If Allocated differs from Pod,
	// Resize contains the reason.
	Allocated, Actual *manifest.Pod
	Resize            Resize
	// AllocatedResources contains the allocated requests of the whole pod, and Resources its
	// actual requests and limits. Both may be nil.
	AllocatedResources v1.ResourceList
	Resources          *v1.ResourceRequirements
	// Observed contains every incarnation of the pod's name. Compute uses only incarnations of
	// this podd with the UID and the hash of Pod. So an earlier version that is still being
	// stopped does not affect the status.
	Observed []runtime.Incarnation
	// Containers contains the facts that the runtime does not report, by container name. A
	// missing entry counts as the zero value.
	Containers map[string]ContainerFacts
	// UnhealthyDevices are the unhealthy devices of the node; nil if there are none.
	UnhealthyDevices *allocation.UnhealthyDevices
	// TerminationMessages contains the termination messages of containers, by container ID.
	TerminationMessages map[string]string
	// Waiting is the reason and message of a Pending pod that cannot start; zero if there is no
	// reason.
	Waiting Reason
	// FailureReason is the reason why the pod was rejected, evicted or stopped at its deadline;
	// otherwise nil. If FailureReason is set, the phase is Failed after the last container has
	// stopped.
	FailureReason *Reason
	// IsPressureEviction reports whether the pod was evicted because the node was short of a
	// resource.
	IsPressureEviction bool
	// FinalPhase is Succeeded or Failed if the pod has finished, even if the runtime still lists
	// its containers; otherwise "".
	FinalPhase v1.PodPhase
	// IsUndecided reports whether the end of the pod is not decided or not recorded yet. While
	// IsUndecided is true, the phase is not terminal, because a pod must never run again after a
	// terminal phase was published. For example, podd may still start a container that the runtime
	// does not list, or it may reject the pod.
	IsUndecided bool
	// StartTime is the time when podd first acted on this pod. Zero means the start time of
	// Previous, or Now if Previous has no start time.
	StartTime time.Time
	// HostIPs contains the addresses of the node, the primary address first; empty if unknown.
	HostIPs []string
	// RuntimeName is the scheme of container IDs: "containerd", "cri-o".
	RuntimeName string
	// SupportsRecursiveReadOnly reports whether the pod's runtime handler supports recursive
	// read-only mounts.
	SupportsRecursiveReadOnly bool
	// Previous is the last status of this version of the pod; nil if there is none. It
	// provides the times of unchanged states and the statuses of containers that the
	// runtime no longer lists.
	Previous *v1.PodStatus
	// Now is the wall-clock time. If a time of the runtime is later than Now, it is not used; see
	// timestamp.
	Now time.Time
	// IsRestartingAll reports whether containers are being stopped because all containers of the
	// pod are restarted.
	IsRestartingAll bool
	// Terminating reports whether the pod is being terminated, so that no container is
	// restarted.
	Terminating bool
}

// Resize is the state of an in-place resize of a pod. The zero value means that there
// is none.
type Resize struct {
	// PendingReason contains the reason, Infeasible or Deferred, and the message why the node does
	// not admit the resize; zero if the node admits it.
	PendingReason Reason
	// InProgress reports whether podd is carrying out the resize. FailureMessage is the error of
	// the last attempt, or "".
	InProgress     bool
	FailureMessage string
}

// ContainerFacts are the facts about a container that the runtime does not report. The zero value
// means that there are no such facts.
type ContainerFacts struct {
	// Restarts is the restart count to use if the runtime has no record of the container.
	// Otherwise the status contains the restart count of that record.
	Restarts int32
	// LastExit is the last exit of the container, or nil if there is none. It is used if the
	// runtime no longer has the record. The scheme of its ContainerID may be missing.
	LastExit *v1.ContainerStateTerminated
	// Waiting is the reason why the container is not started, such as CrashLoopBackOff,
	// ErrImagePull or CreateContainerError; zero if there is no reason. It is used only while
	// the container does not run and will be started.
	Waiting Reason
	// Ready and Started are the results of the readiness and the startup probe of the
	// running container; nil before the first result. A container without such a probe
	// is ready and started as soon as it runs.
	Ready, Started *bool
	// RestartsWithAll reports whether the container is restarted because all containers of the pod
	// are restarted (restart rule RestartAllContainers). If it is true, the last exit of the
	// container is not final.
	RestartsWithAll bool
	// IsStarting reports whether the postStart hook has not completed. The container runs, but
	// its state is Waiting, as with the kubelet.
	IsStarting bool
}

// Reason is a reason in CamelCase for programs and a message for users. Both may be "".
type Reason struct{ Reason, Message string }

// Reasons that this package sets itself.
const (
	containerCreating = "ContainerCreating"
	podInitializing   = "PodInitializing"
	completedReason   = "Completed"
	errorReason       = "Error"
	// ContainerStatusUnknown is also the waiting reason of a container that has exited if the
	// runtime has not reported the exit code.
	ContainerStatusUnknown = "ContainerStatusUnknown"
)
