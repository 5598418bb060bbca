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

// Change leads from one state of the page to a later one.
type Change struct {
	Revision uint64   `json:"revision"`
	Node     string   `json:"node"`
	Version  string   `json:"version"`
	Runtime  string   `json:"runtime"`
	Sources  []string `json:"sources"`
	Starting bool     `json:"starting"`
	// Ending is "machine" while that goes down, "pods" once all of them were told to
	// end; nothing is started then.
	Ending string `json:"ending"`
	// CPU is what the node has, in billionths of a core, and Memory, in bytes.
	CPU    int64 `json:"cpu"`
	Memory int64 `json:"memory"`
	// Logs says that /page/logs is served.
	Logs     bool                 `json:"logs"`
	Problems []server.ProblemView `json:"problems"`
	// Whole says that Pods are all; else they are those that differ, and Gone
	// those that are no more.
	Whole bool         `json:"whole,omitempty"`
	Pods  []Pod        `json:"pods"`
	Gone  []server.Key `json:"gone,omitempty"`
}

// Pod is a row of the page.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Tone is "ok" for a pod that does what its manifest asks, "bad" for one
	// that a user should look at, else "wait".
	Tone            string    `json:"tone"`
	Status          string    `json:"status"`          // kubectl's STATUS
	ContainersReady string    `json:"containersReady"` // "1/2"
	Restarts        string    `json:"restarts"`        // "4"; when, the page does not tell
	Began           time.Time `json:"began,omitzero"`  // created or, where that is not known, started
	IP              string    `json:"ip,omitempty"`
	Path            string    `json:"path,omitempty"`
	Line            int       `json:"line,omitempty"`
	Waits           bool      `json:"waits,omitempty"` // a newer version waits to take over
	Why             string    `json:"why,omitempty"`
	// Pulls are the images that are being fetched.
	Pulls      []server.PullView `json:"pulls,omitempty"`
	Containers []Container       `json:"containers"`
}

// Container is one of a pod's.
type Container struct {
	Name     string `json:"name"`
	Kind     string `json:"kind,omitempty"` // "init", "sidecar" or "ephemeral"; "" for a regular one
	Image    string `json:"image"`
	State    string `json:"state"`
	Restarts int32  `json:"restarts,omitempty"`
}

// turn is how long a stream of changes lasts: less than a face that limits its
// answers gives it.
const turn = 20 * time.Second

func (p *Page) state(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), turn)
	defer cancel()
	server.WatchState(w, r.WithContext(ctx), p.State, func(c *server.Change) any { return p.change(c) })
}

func (p *Page) change(c *server.Change) *Change {
	now := time.Now()
	out := &Change{
		Revision: c.Revision, Node: c.Node, Version: c.Version, Runtime: c.Runtime,
		Sources: c.Sources, Starting: c.Starting, Logs: p.Logs != nil,
		Problems: c.Problems, Whole: c.Whole, Gone: c.Gone, Pods: []Pod{},
	}
	switch {
	case c.ShuttingDown:
		out.Ending = "machine"
	case c.Down:
		out.Ending = "pods"
	}
	if c.Machine != nil {
		out.CPU, out.Memory = 1e6*c.Machine.Status.Capacity.Cpu().MilliValue(), c.Machine.Status.Capacity.Memory().Value()
	}
	for _, v := range c.Pods {
		out.Pods = append(out.Pods, p.pod(v, now))
	}
	return out
}

func (p *Page) pod(v *server.PodView, now time.Time) Pod {
	out := Pod{
		Namespace: v.Pod.Namespace, Name: v.Pod.Name, Tone: tone(v),
		Began: began(v.Pod), IP: v.Pod.Status.PodIP,
		Path: v.Path, Line: v.Line, Waits: v.EditWaits(), Pulls: v.Pulls, Containers: containers(v.Pod),
	}
	out.ContainersReady, out.Status, out.Restarts = p.Words(v.Pod, now)
	out.Restarts, _, _ = strings.Cut(out.Restarts, " ")
	if p.Logs != nil {
		out.Why = v.Why // it may quote a container
	}
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

// containers are in the manifest's order.
func containers(p *v1.Pod) []Container {
	seen := map[string]*v1.ContainerStatus{}
	for s := range server.Statuses(p) {
		seen[s.Name] = s
	}
	out := []Container{}
	add := func(name, kind, image string) {
		c := Container{Name: name, Kind: kind, Image: image, State: "Waiting"}
		if s := seen[name]; s != nil {
			c.State, c.Restarts = stateWord(s.State), s.RestartCount
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

// stateWord is the reason where there is one: "CrashLoopBackOff", "Completed".
func stateWord(s v1.ContainerState) string {
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
