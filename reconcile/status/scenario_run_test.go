package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podd/manifest/decode"
	"podd/runtime"
	"podd/server/kube/table"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

// A scenario is a run of a scenario file, with its transcript so far.
type scenario struct {
	t       *testing.T
	facts   Facts
	at      time.Duration
	changed bool // whether the facts have changed since the status was last printed
	out     strings.Builder
	last    v1.PodStatus
}

// runScenario runs a scenario and returns its transcript.
func runScenario(t *testing.T, text string) string {
	head, tail, ok := strings.Cut(text, "\n---\n")
	if !ok {
		t.Fatal("got no line --- after the manifest, want one")
	}
	f := decode.File([]byte(head), decode.Options{NodeName: "node1"})
	if len(f.Pods) != 1 {
		t.Fatalf("got %d pods and problems %v, want one pod", len(f.Pods), f.Problems)
	}
	s := &scenario{t: t, facts: Facts{
		Pod: f.Pods[0], Containers: map[string]ContainerFacts{}, RuntimeName: "containerd",
		HostIPs: []string{"192.0.2.10"},
	}}
	for line := range strings.Lines(tail) {
		line, _, _ = strings.Cut(line, "# ")
		if words := strings.Fields(line); len(words) > 0 {
			s.do(words)
		}
	}
	s.show()
	return strings.NewReplacer(string(f.Pods[0].UID), "UID").Replace(s.out.String())
}

func (s *scenario) do(w []string) {
	switch w[0] {
	case "at":
		d, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.show()
		s.at, s.changed = d, true
	case "sandbox":
		s.sandbox(w)
	case "added":
		c := v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: w[1], Image: "busybox:1.36"}}
		s.facts.Pod = s.facts.Pod.WithEphemeral(append(slices.Clone(s.facts.Pod.Object.Spec.EphemeralContainers), c))
	case "waiting":
		s.facts.Waiting = reason(w[1:])
	case "failed":
		r := reason(w[1:])
		s.facts.FailureReason = &r
	case "admitted":
		s.facts.FailureReason = nil
	case "finished":
		s.facts.FinalPhase = v1.PodPhase(w[1])
	case "restarting":
		s.facts.IsRestartingAll = len(w) > 1
		for _, name := range w[1:] {
			c := s.facts.Containers[name]
			c.RestartsWithAll, c.Waiting = true, Reason{Reason: "RestartingAllContainers"}
			s.facts.Containers[name] = c
		}
	case "terminating":
		s.facts.Terminating = true
	case "forget":
		s.facts.Previous = nil
	case "status":
		s.show()
		text, err := yaml.Marshal(s.last)
		if err != nil {
			s.t.Fatal(err)
		}
		s.out.Write(text)
	default:
		s.container(w)
	}
}

func reason(w []string) Reason {
	if len(w) == 0 || w[0] == "ok" {
		return Reason{}
	}
	return Reason{Reason: w[0], Message: strings.Join(w[1:], " ")}
}

func (s *scenario) now() time.Time { return epoch.Add(s.at) }

func (s *scenario) sandbox(w []string) {
	attempt := uint32(s.number(w[1]))
	inc := s.incarnation(attempt)
	switch w[2] {
	case "ready":
		inc.Ready, inc.IPs = true, w[3:]
	case "dead":
		inc.Ready, inc.IPs = false, nil
	case "gone":
		for i := range s.facts.Observed {
			if s.facts.Observed[i].Attempt == attempt {
				s.facts.Observed = append(s.facts.Observed[:i:i], s.facts.Observed[i+1:]...)
				return
			}
		}
	}
}

// incarnation returns the incarnation with this attempt. If there is none, it creates one and makes
// it the first in Observed, as the newest.
func (s *scenario) incarnation(attempt uint32) *runtime.Incarnation {
	for i := range s.facts.Observed {
		if s.facts.Observed[i].Attempt == attempt {
			return &s.facts.Observed[i]
		}
	}
	inc := runtime.Incarnation{Sandbox: runtime.Sandbox{
		ID: fmt.Sprintf("sandbox%d", attempt), UID: s.facts.Pod.UID, Attempt: attempt, CreatedAt: s.now(),
		Annotations: map[string]string{runtime.AnnotationPodHash: s.facts.Pod.Hash},
	}}
	s.facts.Observed = append([]runtime.Incarnation{inc}, s.facts.Observed...)
	return &s.facts.Observed[0]
}

func (s *scenario) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) container(w []string) {
	name, attempt, _ := strings.Cut(w[0], "#")
	c := s.facts.Containers[name]
	yes := len(w) > 2 && w[2] == "true"
	switch w[1] {
	case "waiting":
		c.Waiting = reason(w[2:])
	case "ready":
		c.Ready = &yes
	case "started":
		c.Started = &yes
	case "restarted":
		c.RestartsWithAll, c.Waiting = false, Reason{}
	case "restarts":
		c.Restarts = int32(s.number(w[2]))
	case "exit":
		c.LastExit = &v1.ContainerStateTerminated{
			ExitCode: int32(s.number(w[2])), Reason: w[3], ContainerID: name + "-" + attempt,
			StartedAt: metav1.NewTime(epoch), FinishedAt: metav1.NewTime(s.now()),
		}
	default:
		s.record(name, attempt, w[1:])
	}
	s.facts.Containers[name] = c
}

// record changes the runtime's record of a container in the newest sandbox.
func (s *scenario) record(name, attempt string, w []string) {
	if attempt == "" {
		attempt = "0"
	}
	inc := &s.facts.Observed[0]
	id := name + "-" + attempt
	inc.Containers = append([]runtime.Container{}, inc.Containers...)
	at := -1
	for i := range inc.Containers {
		if inc.Containers[i].ID == id {
			at = i
		}
	}
	if w[0] == "gone" {
		inc.Containers = append(inc.Containers[:at], inc.Containers[at+1:]...)
		return
	}
	if at < 0 {
		at = len(inc.Containers)
		inc.Containers = append(inc.Containers, runtime.Container{
			ID: id, Name: name, SandboxID: inc.ID, Attempt: uint32(s.number(attempt)), CreatedAt: s.now(),
			Image: "docker.io/library/busybox:1.36", ImageRef: "sha256:feed",
		})
	}
	c := &inc.Containers[at]
	when := s.now()
	if last := w[len(w)-1]; strings.HasPrefix(last, "@") {
		d, err := time.ParseDuration(last[1:])
		if err != nil {
			s.t.Fatal(err)
		}
		when, w = epoch.Add(d), w[:len(w)-1]
	}
	switch w[0] {
	case "created":
		c.State = runtime.Created
	case "running":
		c.State, c.StartedAt = runtime.Running, when
	case "unknown":
		c.State = runtime.Unknown
	case "exited":
		c.State, c.FinishedAt, c.ExitCode = runtime.Exited, when, int32(s.number(w[1]))
		c.Reason = strings.Join(w[2:], " ")
	default:
		s.t.Fatalf("unknown word %q", w[0])
	}
}

// show prints the status in a few lines, after checking the laws.
func (s *scenario) show() {
	if !s.changed {
		return
	}
	s.changed = false
	s.facts.Now = s.now()
	before := snapshot(s.facts)
	s.last = Compute(s.facts)
	if diff := cmp.Diff(before, snapshot(s.facts)); diff != "" {
		s.t.Errorf("at %s: Compute modified the facts (-before +after):\n%s", s.at, diff)
	}
	s.facts.Previous = s.last.DeepCopy()
	if diff := cmp.Diff(s.last, Compute(s.facts)); diff != "" {
		s.t.Errorf("at %s: second Compute with the first status as Previous (-first +second):\n%s", s.at, diff)
	}
	pod := s.facts.Pod.Object.DeepCopy()
	pod.Status = s.last
	if s.facts.Terminating {
		pod.DeletionTimestamp = &metav1.Time{Time: s.now()}
	}
	r := table.NewPodCells(pod, s.now())
	fmt.Fprintf(&s.out, "%-5s %-10s %-5s %-20s %-14s %s\n", s.at, s.last.Phase, r.Ready, r.Status, r.Restarts, conditionsText(s.last))
	for _, list := range [][]v1.ContainerStatus{s.last.InitContainerStatuses, s.last.ContainerStatuses, s.last.EphemeralContainerStatuses} {
		for i := range list {
			fmt.Fprintf(&s.out, "        %s\n", containerText(&list[i]))
		}
	}
}

func conditionsText(s v1.PodStatus) string {
	text := ""
	for _, c := range s.Conditions {
		mark := "-"
		if c.Status == v1.ConditionTrue {
			mark = "+"
		}
		text += " " + mark + string(c.Type)
	}
	if s.Reason != "" || s.Message != "" {
		text += " | " + s.Reason + ": " + s.Message
	}
	return strings.TrimSpace(text)
}

func containerText(c *v1.ContainerStatus) string {
	text := c.Name + ": " + stateText(c.State)
	if last := stateText(c.LastTerminationState); last != "" {
		text += ", before: " + last
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(", %d restarts", c.RestartCount)
	}
	if c.Started != nil && *c.Started {
		text += ", started"
	}
	if c.Ready {
		text += ", ready"
	}
	return text
}

func stateText(s v1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return strings.TrimSpace("waiting " + s.Waiting.Reason + " " + s.Waiting.Message)
	case s.Running != nil:
		return "running since " + s.Running.StartedAt.Sub(epoch.Truncate(time.Second)).String()
	case s.Terminated != nil:
		return fmt.Sprintf("exit %d %s", s.Terminated.ExitCode, s.Terminated.Reason)
	}
	return ""
}

// snapshot returns a copy of the facts for a later comparison.
func snapshot(f Facts) Facts {
	c := f
	c.Previous = f.Previous.DeepCopy()
	pod := *f.Pod
	pod.Object = f.Pod.Object.DeepCopy()
	c.Pod = &pod
	c.Observed = append([]runtime.Incarnation{}, f.Observed...)
	for i := range c.Observed {
		c.Observed[i].Containers = append([]runtime.Container(nil), c.Observed[i].Containers...)
	}
	c.Containers = map[string]ContainerFacts{}
	for name, facts := range f.Containers {
		facts.LastExit = facts.LastExit.DeepCopy()
		c.Containers[name] = facts
	}
	return c
}
