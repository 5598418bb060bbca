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

// stateChange describes the difference between two states of the page.
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
	// CPU and Memory are the capacity of the node in billionths of a core and in
	// bytes.
	CPU    int64 `json:"cpu"`
	Memory int64 `json:"memory"`
	// Logs is set if /page/logs is served.
	Logs     bool                 `json:"logs"`
	Problems []server.ProblemView `json:"problems"`
	// Whole is set if Pods has all pods. Otherwise Pods has those that changed and
	// Gone those that were deleted.
	Whole bool         `json:"whole,omitempty"`
	Pods  []podRow     `json:"pods"`
	Gone  []server.Key `json:"gone,omitempty"`
}

// podRow is a row of the page's table.
type podRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Tone is "ok" for a ready pod, "bad" for a pod that needs action by a user,
	// else "wait".
	Tone            string    `json:"tone"`
	Status          string    `json:"status"`          // kubectl's STATUS
	ContainersReady string    `json:"containersReady"` // "1/2"
	Restarts        string    `json:"restarts"`        // "4"; without the time of the last restart
	Began           time.Time `json:"began,omitzero"`  // time of creation or, if unknown, of the start
	IP              string    `json:"ip,omitempty"`
	Path            string    `json:"path,omitempty"`
	Line            int       `json:"line,omitempty"`
	Waits           bool      `json:"waits,omitempty"` // a newer version of the pod waits to replace it
	Why             string    `json:"why,omitempty"`
	// Pulls are the images that are being pulled.
	Pulls      []server.PullView `json:"pulls,omitempty"`
	Containers []containerRow    `json:"containers"`
}

// containerRow is a container of a podRow.
type containerRow struct {
	Name     string `json:"name"`
	Kind     string `json:"kind,omitempty"` // "init", "sidecar" or "ephemeral"; "" for a regular one
	Image    string `json:"image"`
	State    string `json:"state"`
	Restarts int32  `json:"restarts,omitempty"`
}

// streamTimeout is the duration of a stream of changes. It is shorter than the
// response timeout of endpoints that limit their responses.
const streamTimeout = 20 * time.Second

func (p *Page) state(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), streamTimeout)
	defer cancel()
	server.WatchState(w, r.WithContext(ctx), p.State, func(c *server.Change) any { return p.change(c) })
}

func (p *Page) change(c *server.Change) *stateChange {
	now := time.Now()
	out := &stateChange{
		Revision: c.Revision, Node: c.Node, Version: c.Version, Runtime: c.Runtime,
		Sources: c.Sources, Starting: c.Starting, Logs: p.Logs != nil,
		Problems: p.problems(c.Problems), Whole: c.Whole, Gone: c.Removed, Pods: []podRow{},
	}
	switch {
	case c.ShuttingDown:
		out.Shutdown = "node"
	case c.Down:
		out.Shutdown = "pods"
	}
	if c.NodeObject != nil {
		out.CPU, out.Memory = 1e6*c.NodeObject.Status.Capacity.Cpu().MilliValue(), c.NodeObject.Status.Capacity.Memory().Value()
	}
	for _, v := range c.Pods {
		out.Pods = append(out.Pods, p.pod(v, now))
	}
	return out
}

func (p *Page) problems(all []server.ProblemView) []server.ProblemView {
	if p.Logs != nil || len(all) == 0 {
		return all
	}
	v := p.State.View()
	out := make([]server.ProblemView, 0, len(all))
	for _, one := range all {
		out = append(out, server.RedactProblem(one, v.Pod(one.Pod)))
	}
	return out
}

func (p *Page) pod(v *server.PodView, now time.Time) podRow {
	if p.Logs == nil {
		v = server.RedactView(v)
	}
	out := podRow{
		Namespace: v.Pod.Namespace, Name: v.Pod.Name, Tone: tone(v),
		Began: began(v.Pod), IP: v.Pod.Status.PodIP,
		Path: v.Path, Line: v.Line, Waits: v.HasPendingEdit(), Why: v.Why, Pulls: v.Pulls, Containers: containers(v.Pod),
	}
	out.ContainersReady, out.Status, out.Restarts = p.Columns(v.Pod, now)
	out.Restarts, _, _ = strings.Cut(out.Restarts, " ")
	return out
}

func began(p *v1.Pod) time.Time {
	if start := p.Status.StartTime; p.CreationTimestamp.IsZero() && start != nil {
		return start.Time
	}
	return p.CreationTimestamp.Time
}

func tone(v *server.PodView) string {
	switch {
	case v.Ready:
		return "ok"
	case v.Problem, v.Pod.Status.Phase == v1.PodFailed,
		slices.ContainsFunc(v.Steps, func(s server.StepView) bool { return s.Problem }):
		return "bad"
	}
	return "wait"
}

// containers returns the containers in the manifest's order.
func containers(p *v1.Pod) []containerRow {
	statuses := map[string]*v1.ContainerStatus{}
	for s := range server.Statuses(p) {
		statuses[s.Name] = s
	}
	out := []containerRow{}
	add := func(name, kind, image string) {
		c := containerRow{Name: name, Kind: kind, Image: image, State: "Waiting"}
		if s := statuses[name]; s != nil {
			c.State, c.Restarts = stateLabel(s.State), s.RestartCount
		}
		out = append(out, c)
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
	return out
}

// stateLabel returns the reason of the state, such as "CrashLoopBackOff" or
// "Completed", or the name of the state if it has no reason.
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
