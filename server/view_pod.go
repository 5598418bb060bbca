package server

import (
	"iter"
	"time"

	v1 "k8s.io/api/core/v1"
)

// PodView is one pod and what podd last decided on it. Only Pod is required.
type PodView struct {
	// Pod is the object in force with its status; never nil. While it is being
	// ended its deletionTimestamp is set. Of a pod that no manifest wants any
	// more it has at least the names and the deletionTimestamp; of one of which
	// nobody knows yet whether a manifest wants it, the names alone.
	Pod *v1.Pod `json:"pod"`
	// Path is the file, absolute, or the URL without userinfo and query, that
	// the object was written in; Line is where in it, from 1, 0 when unknown.
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"`
	// Current says that the object in force is that of the wanted content of
	// Path: no newer one waits to take over.
	Current bool `json:"current"`
	// Earlier is how many containers run on of a version that no manifest has any
	// more, since the object in force cannot start yet.
	Earlier int `json:"earlier,omitempty"`
	// Ending is how many containers of an earlier version still run, which are being
	// ended for the object in force.
	Ending int `json:"ending,omitempty"`
	// Sandbox is the CRI id of the pod's sandbox; "" while none lives.
	Sandbox string `json:"sandbox,omitempty"`
	// Exists says that something of it is on this machine: a sandbox, a
	// container, a mount, a directory, a start under way.
	Exists bool `json:"exists"`
	// Ready says that it does what its manifest asks: condition Ready, or, for
	// a pod that runs to completion, succeeded.
	Ready bool `json:"ready"`

	// Phase and Rule are the plan's: where the pod stands and the row that
	// matched; Why says it with this pod's facts. Problem says that a user has
	// something to mend. Since is when the rule began to match.
	Phase   string    `json:"phase,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Why     string    `json:"why,omitempty"`
	Problem bool      `json:"problem,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Steps are the decisions on the containers, in the manifest's order.
	Steps []StepView `json:"steps,omitempty"`
	// Wake is when podd looks again by itself; zero for never.
	Wake time.Time `json:"wake,omitzero"`
	// Next are the planned actions, those under way included: "start pg".
	Next []string `json:"next,omitempty"`
	// Pulls are the images that are being fetched, in the order of the containers'
	// names.
	Pulls []PullView `json:"pulls,omitempty"`
	// Last are the containers' last exits, in the manifest's order.
	Last []ExitView `json:"last,omitempty"`
}

// PullView is an image that is being fetched, or waits for its turn to be.
type PullView struct {
	Container string    `json:"container"`
	Image     string    `json:"image"`
	Since     time.Time `json:"since"`
}

// StepView is the plan's decision on one container.
type StepView struct {
	Container string `json:"container"`
	// Rule is the row that matched: "crashed -> back off".
	Rule string `json:"rule"`
	Why  string `json:"why,omitempty"`
	// Reason is a waiting reason ("CrashLoopBackOff"), or "".
	Reason string `json:"reason,omitempty"`
	// Crashes is how many ends in a row made the container back off.
	Crashes int `json:"crashes,omitempty"`
	// Until is when the wait ends by itself; zero for not by time.
	Until   time.Time `json:"until,omitzero"`
	Problem bool      `json:"problem,omitempty"`
}

// ExitView is how a container ended the last time.
type ExitView struct {
	Container string `json:"container"`
	ExitCode  int32  `json:"exitCode"`
	Reason    string `json:"reason,omitempty"` // the runtime's: Completed, Error, OOMKilled
	// Message is what the container left to say of its end.
	Message string `json:"message,omitempty"`
	// Why is why podd ended it; "" when it ended by itself.
	Why      string    `json:"why,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
}

// Key is the namespace and full name of the pod.
func (p *PodView) Key() Key { return Key{p.Pod.Namespace, p.Pod.Name} }

// EditWaits says that a newer version of it waits while it does its work. One that
// is being removed has no newer version.
func (p *PodView) EditWaits() bool {
	return p.Pod.DeletionTimestamp == nil && (!p.Current && p.Ready || p.Earlier > 0)
}

// Statuses are those of all containers of p: init, regular and ephemeral.
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
