package server

import (
	"iter"
	"time"

	v1 "k8s.io/api/core/v1"
)

// PodView is a pod and podd's last decision about it. Only Pod is required.
type PodView struct {
	// Pod is the object in effect with its status; never nil. Its deletionTimestamp
	// is set while it is being stopped. A pod that no source has anymore has at
	// least its names and the deletionTimestamp. A pod for which it is not known
	// yet whether a source has it has only its names.
	Pod *v1.Pod `json:"pod"`
	// Path is the absolute path of the file, or the URL without userinfo and query,
	// that contains the object. Line is its first line, counted from 1; 0 if
	// unknown.
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"`
	// Current is set if the object in effect is that of the content of Path, so
	// that no newer one waits to replace it.
	Current bool `json:"current"`
	// Earlier is the number of containers of a version that no source has anymore
	// and that continue to run because the object in effect cannot start yet.
	Earlier int `json:"earlier,omitempty"`
	// Ending is the number of containers of an earlier version that are being
	// stopped so that the object in effect can start.
	Ending int `json:"ending,omitempty"`
	// Sandbox is the CRI id of the pod's sandbox; "" if no sandbox is running.
	Sandbox string `json:"sandbox,omitempty"`
	// Exists is set if the pod has anything on the host: a sandbox, a container, a
	// mount, a directory, or a start in progress.
	Exists bool `json:"exists"`
	// Ready is set if the pod does what its manifest requests: its condition Ready
	// is true or, if it runs to completion, it has succeeded.
	Ready bool `json:"ready"`

	// Phase and Rule are the plan's phase of the pod and the ID of the pod rule that
	// matched. Why is the reason with this pod's details. WhyRule is the ID of the
	// additional rule that Why comes from, or "" if it comes from Rule. Problem is set
	// if the pod needs action by a user. Since is the time since when the rule matches.
	Phase   string    `json:"phase,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Why     string    `json:"why,omitempty"`
	WhyRule string    `json:"whyRule,omitempty"`
	Problem bool      `json:"problem,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Steps are the decisions about the containers, in the manifest's order.
	Steps []StepView `json:"steps,omitempty"`
	// Wake is the time at which podd checks the pod again without an event; zero if
	// it will not.
	Wake time.Time `json:"wake,omitzero"`
	// Next are the planned actions, including those in progress, such as "start
	// pg".
	Next []string `json:"next,omitempty"`
	// Pulls are the images that are being pulled, in the order of the containers'
	// names.
	Pulls []PullView `json:"pulls,omitempty"`
	// Attempts has, by CRI id, the attempt number of each container whose attempt
	// number differs from the restart count. It may be nil. Logs are named after
	// the attempt number.
	Attempts map[string]uint32 `json:"-"`
	// Last are the last terminations of the containers, in the manifest's order.
	Last []ExitView `json:"last,omitempty"`
}

// PullView is an image that is being pulled, or is waiting to be pulled.
type PullView struct {
	Container string    `json:"container"`
	Image     string    `json:"image"`
	Since     time.Time `json:"since"`
}

// StepView is the plan's decision about one container.
type StepView struct {
	Container string `json:"container"`
	// Rule is the ID of the rule that matched, such as "CrashBackOff".
	Rule string `json:"rule"`
	Why  string `json:"why,omitempty"`
	// Reason is a waiting reason such as "CrashLoopBackOff", or "".
	Reason string `json:"reason,omitempty"`
	// Crashes is the number of consecutive terminations that increased the
	// back-off.
	Crashes int `json:"crashes,omitempty"`
	// Until is the time at which the wait ends; zero if it does not end by time.
	Until   time.Time `json:"until,omitzero"`
	Problem bool      `json:"problem,omitempty"`
}

// ExitView is the last termination of a container.
type ExitView struct {
	Container string `json:"container"`
	ExitCode  int32  `json:"exitCode"`
	Reason    string `json:"reason,omitempty"` // the runtime's reason: Completed, Error or OOMKilled
	// Message is the container's termination message.
	Message string `json:"message,omitempty"`
	// Why is the reason if podd stopped the container; "" if it exited by itself.
	Why      string    `json:"why,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
}

// Key returns the key of the pod.
func (p *PodView) Key() Key { return Key{p.Pod.Namespace, p.Pod.Name} }

// HasPendingEdit reports whether a newer version of the pod waits while this one is
// running. A pod that is being deleted has no newer version.
func (p *PodView) HasPendingEdit() bool {
	return p.Pod.DeletionTimestamp == nil && (!p.Current && p.Ready || p.Earlier > 0)
}

// Statuses returns the statuses of all containers of p: init, regular and
// ephemeral.
func Statuses(p *v1.Pod) iter.Seq[*v1.ContainerStatus] {
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
