package page

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// A stateChange is one line of /page/state: the difference between two states of the node.
type stateChange struct {
	Revision uint64   `json:"revision"`
	Node     string   `json:"node"`
	Version  string   `json:"version"`
	Runtime  string   `json:"runtime"`
	Sources  []string `json:"sources"`
	Starting bool     `json:"starting"`
	// Shutdown is "node" while the node shuts down, and "pods" after podd down.
	// In both cases podd starts no pods.
	Shutdown string `json:"shutdown"`
	// CPUNanoCores is the node's CPU capacity in billionths of a core. MemoryBytes is its memory
	// capacity in bytes.
	CPUNanoCores int64 `json:"cpu"`
	MemoryBytes  int64 `json:"memory"`
	// ServesLogs reports whether /page/logs is served.
	ServesLogs bool                 `json:"logs"`
	Problems   []server.ProblemView `json:"problems"`
	// IsComplete reports whether Pods contains all pods. If it is false, Pods contains the pods
	// that changed, and Deleted the pods that were deleted.
	IsComplete bool         `json:"whole,omitempty"`
	Pods       []podRow     `json:"pods"`
	Deleted    []server.Key `json:"gone,omitempty"`
}

// A podRow is a row in the page's table of pods.
type podRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// StatusClass is "ok" for a ready pod, "bad" for a pod that needs action by a user, and
	// otherwise "wait".
	StatusClass     string    `json:"tone"`
	Status          string    `json:"status"`          // value of kubectl's column STATUS
	ContainersReady string    `json:"containersReady"` // number of ready containers and of all containers, for example "1/2"
	Restarts        string    `json:"restarts"`        // number of restarts, for example "4"
	CreatedAt       time.Time `json:"began,omitzero"`  // time of creation or, if it is unknown, of the start
	IP              string    `json:"ip,omitempty"`
	Path            string    `json:"path,omitempty"`
	Line            int       `json:"line,omitempty"`
	// WaitsForEdit reports whether a newer version of the pod waits to replace this one.
	WaitsForEdit bool   `json:"waits,omitempty"`
	Why          string `json:"why,omitempty"`
	// Pulls contains the image pulls in progress.
	Pulls      []server.PullView `json:"pulls,omitempty"`
	Containers []containerRow    `json:"containers"`
}

// A containerRow is a container of a podRow.
type containerRow struct {
	Name     string `json:"name"`
	Kind     string `json:"kind,omitempty"` // "init", "sidecar" or "ephemeral"; "" for a regular container
	Image    string `json:"image"`
	State    string `json:"state"`
	Restarts int32  `json:"restarts,omitempty"`
}

// streamTimeout is how long a response of /page/state lasts. It must be shorter than the
// time limit for responses of the endpoints that serve the page.
const streamTimeout = 20 * time.Second

// state serves /page/state.
func (p *Page) state(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), streamTimeout)
	defer cancel()
	server.WatchState(w, r.WithContext(ctx), p.State, func(c *server.Change) any { return p.newStateChange(c) })
}

// newStateChange converts a change of the published state.
func (p *Page) newStateChange(c *server.Change) *stateChange {
	now := time.Now()
	change := &stateChange{
		Revision: c.Revision, Node: c.Node, Version: c.Version, Runtime: c.Runtime,
		Sources: c.Sources, Starting: c.Starting, ServesLogs: p.Logs != nil,
		Problems: p.shownProblems(c.Problems), IsComplete: c.IsComplete, Deleted: c.Removed, Pods: []podRow{},
	}
	switch {
	case c.ShuttingDown:
		change.Shutdown = "node"
	case c.IsDown:
		change.Shutdown = "pods"
	}
	if c.NodeObject != nil {
		change.CPUNanoCores, change.MemoryBytes = 1e6*c.NodeObject.Status.Capacity.Cpu().MilliValue(), c.NodeObject.Status.Capacity.Memory().Value()
	}
	for _, v := range c.Pods {
		change.Pods = append(change.Pods, p.newPodRow(v, now))
	}
	return change
}

// shownProblems returns the problems that the page shows. The problems are redacted if the page has
// no logs.
func (p *Page) shownProblems(problems []server.ProblemView) []server.ProblemView {
	if p.Logs != nil || len(problems) == 0 {
		return problems
	}
	v := p.State.View()
	shown := make([]server.ProblemView, 0, len(problems))
	for _, problem := range problems {
		shown = append(shown, server.RedactProblem(problem, v.Pod(problem.Pod)))
	}
	return shown
}

// newPodRow returns the row of a pod. The row is redacted if the page has no logs.
func (p *Page) newPodRow(v *server.PodView, now time.Time) podRow {
	if p.Logs == nil {
		v = server.RedactPodView(v)
	}
	row := podRow{
		Namespace: v.Pod.Namespace, Name: v.Pod.Name, StatusClass: podStatusClass(v),
		CreatedAt: startTime(v.Pod), IP: v.Pod.Status.PodIP,
		Path: v.Path, Line: v.Line, WaitsForEdit: v.HasPendingEdit(), Why: v.Why, Pulls: v.Pulls, Containers: containerRows(v.Pod),
	}
	row.ContainersReady, row.Status, row.Restarts = p.PodColumns(v.Pod, now)
	row.Restarts, _, _ = strings.Cut(row.Restarts, " ")
	return row
}

// startTime returns the time of creation or, if it is unknown, of the start.
func startTime(p *v1.Pod) time.Time {
	if start := p.Status.StartTime; p.CreationTimestamp.IsZero() && start != nil {
		return start.Time
	}
	return p.CreationTimestamp.Time
}

// podStatusClass returns the value of podRow.StatusClass for a pod.
func podStatusClass(v *server.PodView) string {
	switch {
	case v.Ready:
		return "ok"
	case v.NeedsUser, v.Pod.Status.Phase == v1.PodFailed,
		slices.ContainsFunc(v.Decisions, func(s server.DecisionView) bool { return s.NeedsUser }):
		return "bad"
	}
	return "wait"
}

// containerRows returns the containers of a pod in the order of the manifest.
func containerRows(p *v1.Pod) []containerRow {
	statuses := map[string]*v1.ContainerStatus{}
	for s := range server.ContainerStatuses(p) {
		statuses[s.Name] = s
	}
	rows := []containerRow{}
	add := func(name, kind, image string) {
		c := containerRow{Name: name, Kind: kind, Image: image, State: "Waiting"}
		if s := statuses[name]; s != nil {
			c.State, c.Restarts = stateLabel(s.State), s.RestartCount
		}
		rows = append(rows, c)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		kind := "init"
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			kind = "sidecar"
		}
		add(c.Name, kind, c.Image)
	}
	for i := range p.Spec.Containers {
		add(p.Spec.Containers[i].Name, "", p.Spec.Containers[i].Image)
	}
	for i := range p.Spec.EphemeralContainers {
		add(p.Spec.EphemeralContainers[i].Name, "ephemeral", p.Spec.EphemeralContainers[i].Image)
	}
	return rows
}

// stateLabel returns the reason of a container's state, such as "CrashLoopBackOff" or
// "Completed". If there is no reason, it returns the name of the state.
func stateLabel(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "Running"
	case s.Terminated != nil && s.Terminated.Reason != "":
		return s.Terminated.Reason
	case s.Terminated != nil:
		return "Terminated"
	case s.Waiting != nil && s.Waiting.Reason != "":
		return s.Waiting.Reason
	}
	return "Waiting"
}
