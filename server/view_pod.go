package server

import (
	"iter"
	"time"

	v1 "k8s.io/api/core/v1"
)

// PodView is a pod and podd's last decision about it. Only Pod is required.
type PodView struct {
	// Pod is the object in effect with its status; never nil. Its deletionTimestamp is set while
	// the pod is being stopped. If the pod was removed from its source, at least its names and the
	// deletionTimestamp are set. Until all sources have been read, Pod may contain only the
	// namespace and name of a pod that was found on the host.
	Pod *v1.Pod `json:"pod"`
	// Path is the absolute path of the file, or the URL without userinfo and query,
	// that contains the object. Line is the first line of the object in the file,
	// counted from 1; 0 if unknown.
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"`
	// IsInSource reports whether a source contains the pod. In contrast to Path, it is also set for a pod that
	// is being deleted in an API server, which contains the pod until its deletion has completed.
	IsInSource bool `json:"-"`
	// IsCurrent reports whether the object in effect is the object in the current content of Path. If it is
	// set, no newer version of the pod waits to replace the object in effect.
	IsCurrent bool `json:"current"`
	// OutdatedRunningContainers is the number of running containers that belong to an earlier
	// version of the pod. They continue to run because the object in effect cannot start yet.
	OutdatedRunningContainers int `json:"outdatedRunning,omitempty"`
	// OutdatedStoppingContainers is the number of containers of an earlier version of the pod that
	// are being stopped, so that the object in effect can start.
	OutdatedStoppingContainers int `json:"outdatedStopping,omitempty"`
	// SandboxID is the CRI id of the pod's sandbox; "" if no sandbox is running.
	SandboxID string `json:"sandbox,omitempty"`
	// VolumePlugins contains the kubelet's name of the plugin of each volume for which Pod does not determine
	// the plugin, such as a claim, by the name of the volume.
	VolumePlugins map[string]string `json:"-"`
	// RuntimeContainers counts the containers of the pod in the runtime.
	RuntimeContainers ContainerCounts `json:"-"`
	// Exists is set if the pod has anything on the host: a sandbox, a container, a
	// mount, a directory, or a start in progress.
	Exists bool `json:"exists"`
	// Ready is set if the condition Ready of the pod is true or, for a pod that runs to completion,
	// if the pod has succeeded.
	Ready bool `json:"ready"`

	// Phase is the plan's phase of the pod. Rule is the ID of the pod rule that matched, and Since
	// is the time at which Rule began to match. Why is the reason with the details of this pod. If
	// an additional rule provides Why, WhyRule is the ID of this rule. If Rule provides Why,
	// WhyRule is "". NeedsUser is set if the pod needs action by a user.
	Phase     string    `json:"phase,omitempty"`
	Rule      string    `json:"rule,omitempty"`
	Why       string    `json:"why,omitempty"`
	WhyRule   string    `json:"whyRule,omitempty"`
	NeedsUser bool      `json:"problem,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// EvictionSignal is the kubelet's name of the reason for which the pod was evicted: an eviction
	// signal, such as "memory.available", or a storage limit, such as "emptydirfs.limit". It is "" if the
	// pod was not evicted, or if podd was restarted after it evicted a pod that was already being deleted.
	EvictionSignal string `json:"evictionSignal,omitempty"`
	// PreemptionSignal is the resource that the pod released when it was preempted, such as "cpu"; ""
	// if the pod was not preempted.
	PreemptionSignal string `json:"preemptionSignal,omitempty"`
	// InsufficientResource is the resource because of which the pod is not admitted, such as "cpu"; ""
	// if the pod is admitted or is not admitted for another reason.
	InsufficientResource string `json:"insufficientResource,omitempty"`
	// IsRejected reports whether the node has rejected a pod of a cluster since podd was started. The pod
	// has then failed.
	IsRejected bool `json:"-"`
	// Decisions are the decisions about the containers, in the manifest's order.
	Decisions []DecisionView `json:"steps,omitempty"`
	// NextCheck is the time at which podd checks the pod again even if no event occurs; zero if
	// podd waits only for events.
	NextCheck time.Time `json:"wake,omitzero"`
	// PlannedActions describes the planned actions and the actions in progress, for example
	// "start pg".
	PlannedActions []string `json:"next,omitempty"`
	// Pulls are the images that are being pulled, in the order of the containers'
	// names.
	Pulls []PullView `json:"pulls,omitempty"`
	// Attempts maps the CRI id of a container to its attempt number, which is in the
	// name of the container's log file. A container is in the map only if its attempt
	// number differs from its restart count. Attempts may be nil.
	Attempts map[string]uint32 `json:"-"`
	// LastExits are the last terminations of the containers, in the manifest's order.
	LastExits []ExitView `json:"last,omitempty"`
}

// ContainerCounts is the number of containers by their state in the runtime. Exited includes containers
// that have been restarted, because the runtime retains them.
type ContainerCounts struct{ Created, Running, Exited, Unknown int }

// PullView is an image that is being pulled, or is waiting to be pulled.
type PullView struct {
	Container string    `json:"container"`
	Image     string    `json:"image"`
	Since     time.Time `json:"since"`
}

// DecisionView is the plan's decision about one container.
type DecisionView struct {
	Container string `json:"container"`
	// Rule is the ID of the rule that matched, such as "CrashBackOff".
	Rule string `json:"rule"`
	Why  string `json:"why,omitempty"`
	// Reason is a waiting reason such as "CrashLoopBackOff", or "".
	Reason string `json:"reason,omitempty"`
	// Crashes is the number of consecutive terminations that increased the
	// back-off.
	Crashes int `json:"crashes,omitempty"`
	// Until is the time until which the container waits; zero if the container waits for an event.
	Until     time.Time `json:"until,omitzero"`
	NeedsUser bool      `json:"problem,omitempty"`
}

// ExitView is the last termination of a container.
type ExitView struct {
	Container string `json:"container"`
	ExitCode  int32  `json:"exitCode"`
	Reason    string `json:"reason,omitempty"` // the runtime's reason: Completed, Error or OOMKilled
	// Message is the container's termination message.
	Message string `json:"message,omitempty"`
	// Why is the reason why podd stopped the container; "" if the container exited by itself.
	Why      string    `json:"why,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
}

// Key returns the key of the pod.
func (p *PodView) Key() Key { return Key{p.Pod.Namespace, p.Pod.Name} }

// HasPendingEdit reports whether a newer version of the pod waits while containers of
// an earlier version are running. It returns false for a pod that is being deleted.
func (p *PodView) HasPendingEdit() bool {
	return p.Pod.DeletionTimestamp == nil && (!p.IsCurrent && p.Ready || p.OutdatedRunningContainers > 0)
}

// ContainerStatuses returns the statuses of all containers of p: init, regular and
// ephemeral.
func ContainerStatuses(p *v1.Pod) iter.Seq[*v1.ContainerStatus] {
	return func(yield func(*v1.ContainerStatus) bool) {
		for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
