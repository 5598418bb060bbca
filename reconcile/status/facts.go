// Package status makes a v1.PodStatus of what is known about a pod.
//
//	wanted pod ┐
//	observed   ├─▶ Facts ─▶ Of ─▶ v1.PodStatus ─▶ podd ps, /pods, kubectl
//	remembered ┘
//
// Of is pure: no clock, no I/O, nothing of the input is written to or shared with
// the result. The status is what a kubelet of Kubernetes 1.34 says, word by word,
// with the addresses filled in without a cluster too. The words of a listing are
// made of it in server/kube/table.
//
// An ephemeral container has a status like others, and counts for nothing in that
// of the pod. What its pod lost keeps its last one: it is never started again.
//
// Two laws keep whoever watches a status from being woken for nothing. Of is
// idempotent: with its own result as Previous it returns that result. And times
// have whole seconds, and move only when what they date has changed.
package status

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// Facts are all that a status rests on.
type Facts struct {
	Pod *manifest.Pod // required
	// Allocated is Pod in the sizes that its containers are to have, Actual in those
	// that they have; nil: as Pod. Where Pod is another, Resize says why.
	Allocated, Actual *manifest.Pod
	Resize            Resize
	// Observed is every incarnation of the pod's name. Only ours of Pod's UID
	// and hash count, so that an earlier version that still ends is not taken
	// for this one.
	Observed []runtime.Incarnation
	// Containers has what is known beside the runtime, by container name; a
	// missing entry knows nothing.
	Containers map[string]ContainerFacts
	// Said has the termination messages of containers, by ID.
	Said map[string]string
	// Waiting says why the pod as a whole does not start, and is the reason and
	// message of a Pending pod. Zero: nothing to say.
	Waiting Reason
	// Failed is why the pod was rejected, evicted or ended at its deadline; nil
	// when it was not. The pod is Failed for as long as this is set, and from
	// the moment on at which none of its containers runs.
	Failed *Reason
	// Finished is Succeeded or Failed once the pod has run to its end, whatever
	// the runtime still knows; "" before.
	Finished v1.PodPhase
	// StartTime is when podd first acted on this pod; zero means that of
	// Previous, else Now.
	StartTime time.Time
	// HostIPs of the node, the primary first; empty when unknown.
	HostIPs []string
	// RuntimeName is the scheme of container ids: "containerd", "cri-o".
	RuntimeName string
	// RecursiveReadOnly says that the pod's runtime handler serves such mounts.
	RecursiveReadOnly bool
	// Previous is the last status made for this version of the pod; nil when
	// there is none. It gives the times of what has not changed, and stands in
	// for what the runtime no longer lists.
	Previous *v1.PodStatus
	// Now is the wall clock. A time of the runtime that is later counts as Now.
	Now time.Time
	// Terminating says that the pod is being ended: nothing is started again.
	Terminating bool
}

// Resize is how far a pod is with being resized. The zero value is not at all.
type Resize struct {
	// Pending says that the node does not admit it, with the reason Infeasible or
	// Deferred; zero: it does.
	Pending Reason
	// InProgress says that it is being done; Failed is why that fails, or "".
	InProgress bool
	Failed     string
}

// ContainerFacts are what is remembered of one container. The zero value knows
// nothing.
type ContainerFacts struct {
	// Restarts is the restart count where the runtime has no record of the
	// container; with a record, its attempt counts.
	Restarts int32
	// LastExit is the container's last end, needed once the runtime has lost
	// its record. Its ContainerID may come without the runtime's name.
	LastExit *v1.ContainerStateTerminated
	// Waiting is why it is not started: CrashLoopBackOff, ErrImagePull,
	// ImagePullBackOff, CreateContainerError, … It counts only while the
	// container does not run and is to run again. Zero: nothing to say.
	Waiting Reason
	// Ready and Started are the verdicts of the readiness and the startup probe
	// for the running container; nil before the first one. Without such a probe
	// a container is ready and started as soon as it runs.
	Ready, Started *bool
	// Starting says that its postStart hook is not over: it runs, and is waiting
	// for all that others know.
	Starting bool
}

// Reason is a word for programs and a text for people; both may be "".
type Reason struct{ Reason, Message string }

// Reasons that status itself gives.
const (
	ContainerCreating      = "ContainerCreating"
	PodInitializing        = "PodInitializing"
	Completed              = "Completed"
	Error                  = "Error"
	ContainerStatusUnknown = "ContainerStatusUnknown"
)
