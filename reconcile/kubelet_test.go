package reconcile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile"
	"podd/reconcile/render"
	"podd/runtime/runtimetest"
	"podd/runtime/runtimetest/recording"
)

// kubeletStory is a file of testdata/kubelet: the steps of a scenario, and the requests of a
// kubelet to its runtime. Module testdata/controlplane documents the steps and records the files.
// If the requests of podd are intentionally different, the section "podd" contains them. It begins
// with the reason for the difference, in lines that begin with #.
type kubeletStory struct {
	*machine
	pod, edit                    string // manifests
	steps, kubelet, podd, reason string
	regular                      []string        // containers
	fails                        map[string]bool // whether a command fails in the first start of its container, by the first word of the command
	takes                        map[string]time.Duration
}

// TestKubeletStories checks that podd sends the kubelet's requests, in the same order.
func TestKubeletStories(t *testing.T) {
	files, err := filepath.Glob("../testdata/kubelet/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("recorded scenarios: got %d (error %v), want at least 20", len(files), err)
	}
	on, _ := recording.Read(t, "../testdata/render/kubelet-api.jsonl.gz")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				// The kernel limits the CPU and the memory of a new cgroup as follows.
				cgroup := podCgroup{limits: render.Cgroup{CPUQuota: -1, CPUPeriod: 100_000}}
				m.options = func(o *reconcile.Options) {
					o.Effects.MakeCgroup, o.Effects.ReadCgroup = cgroup.make, cgroup.read
					o.RenderNode.SupportsSwapLimits, o.RenderNode.HugePageSizes = true, on.HugePages
					o.RenderNode.Capacity = render.Resources{MilliCPU: on.CPUs * 1000, Memory: on.Memory}
				}
				s := readStory(t, m, file)
				s.compare(s.play())
			})
		})
	}
}

// preStop is the first word of the preStop hooks in stories. The kubelet sets no timeout for these
// hooks, so that they continue after the grace period. TestHooks checks that podd uses the grace
// period as their timeout, so that the runtime ends them.
const preStop = "drain"

func readStory(t *testing.T, m *machine, file string) *kubeletStory {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &kubeletStory{machine: m, fails: map[string]bool{}, takes: map[string]time.Duration{}}
	sections := map[string]*string{"pod.yaml": &s.pod, "edit.yaml": &s.edit, "steps": &s.steps, "kubelet": &s.kubelet, "podd": &s.podd}
	for _, f := range a.Files {
		if sections[f.Name] == nil {
			t.Fatalf("%s: unknown section %s", file, f.Name)
		}
		*sections[f.Name] = string(f.Data)
	}
	for strings.HasPrefix(s.podd, "#") {
		var line string
		line, s.podd, _ = strings.Cut(s.podd, "\n")
		s.reason += line
	}
	return s
}

// play plays the story and returns podd's requests in the format of the story.
func (s *kubeletStory) play() string {
	s.OnExec(s.command)
	s.AddImages("exit:0")
	s.start()
	var steps []string
	var ends []time.Time
	for step := range strings.Lines(s.steps) {
		if s.step(strings.Fields(step)) {
			steps, ends = append(steps, step), append(ends, time.Now())
		}
	}
	var did strings.Builder
	var since time.Time
	for i, step := range steps {
		did.WriteString(step)
		for _, line := range s.lines(since, ends[i]) {
			fmt.Fprintf(&did, "\t%s\n", line)
		}
		since = ends[i]
	}
	return did.String()
}

// compare fails the test unless podd sent the requests of the section "podd" or, if there is no
// such section, the requests of the kubelet. did contains the requests of podd.
func (s *kubeletStory) compare(did string) {
	s.t.Helper()
	got, kubelet, podd := s.ordered(did), s.ordered(s.kubelet), s.ordered(s.podd)
	switch same := slices.Equal(got, kubelet); {
	case s.podd == "" && !same:
		s.t.Errorf("requests differ from the recording of the kubelet (-kubelet +podd):\n%s\nall requests of podd:\n%s", cmp.Diff(kubelet, got), did)
	case s.podd != "" && same:
		s.t.Error("got the requests of the kubelet, want those of the section \"podd\"; remove the section")
	case s.podd != "" && s.reason == "":
		s.t.Error("section \"podd\": got no reason, want lines that begin with #")
	case s.podd != "" && !slices.Equal(got, podd):
		s.t.Errorf("requests differ from the section \"podd\" (-want +got):\n%s\nall requests of podd:\n%s", cmp.Diff(podd, got), did)
	}
}

// step carries out one step. It returns false for a step that only configures the following steps.
func (s *kubeletStory) step(words []string) bool {
	s.t.Helper()
	switch words[0] {
	case "fail":
		s.fails[words[1]] = true
		return false
	case "take":
		d, err := time.ParseDuration(words[2])
		if err != nil {
			s.t.Fatal(err)
		}
		s.takes[words[1]] = d
		return false
	case "start":
		p := podOf(s.t, s.pod)
		for _, c := range p.Object.Spec.Containers {
			s.regular = append(s.regular, c.Name)
		}
		s.setPods(p)
	case "edit":
		s.setPods(podOf(s.t, s.edit))
	case "exit":
		code, _ := strconv.Atoi(words[2])
		if !s.ExitContainer("default/web/"+words[1], int32(code)) {
			s.t.Fatalf("step \"exit\": got no running container %s, want one", words[1])
		}
	case "stop":
		s.setPods()
	default:
		s.t.Fatalf("step %q: got an unknown word, want a step that module testdata/controlplane documents", words[0])
	}
	for last, began := -1, time.Now(); last != len(s.lines(began, time.Now())); s.advance(15 * time.Second) {
		last = len(s.lines(began, time.Now()))
	}
	return true
}

// command runs the configured behavior of a command, by its first word. Any other command
// succeeds at once.
func (s *kubeletStory) command(container string, command []string) runtimetest.Program {
	p := runtimetest.Program{ExitsByItself: true, RunDuration: s.takes[command[0]]}
	lives := 0
	for _, c := range s.Calls("StartContainer") {
		if c.Subject == container {
			lives++
		}
	}
	if s.fails[command[0]] && lives < 2 {
		p.ExitCode = 1
	}
	return p
}

// lines returns the requests in a time range, in the format of a story.
func (s *kubeletStory) lines(from, until time.Time) (lines []string) {
	calls := s.Calls("RunPodSandbox", "StopPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "ExecSync", "UpdateContainerResources", "UpdatePodSandboxResources")
	slices.SortStableFunc(calls, func(a, b runtimetest.Call) int { return a.At.Compare(b.At) })
	for _, c := range calls {
		if c.At.Before(from) || !c.At.Before(until) {
			continue
		}
		line := strings.TrimRight(c.Method+" "+strings.TrimPrefix(strings.TrimPrefix(c.Subject, "default/web"), "/"), " ")
		switch q := c.Request.(type) {
		case *cri.CreateContainerRequest:
			line += fmt.Sprintf(" %d", q.Config.Metadata.Attempt)
		case *cri.StopContainerRequest:
			line += fmt.Sprintf(" within %ds", q.Timeout)
		case *cri.ExecSyncRequest:
			timeout := q.Timeout
			if q.Cmd[0] == preStop {
				timeout = 0
			}
			line += fmt.Sprintf(" %q within %ds", q.Cmd, timeout)
		case *cri.UpdatePodSandboxResourcesRequest:
			text, _ := json.Marshal(q.Resources)
			line += " " + string(text)
		case *cri.UpdateContainerResourcesRequest:
			text, _ := json.Marshal(q.Linux)
			line += " " + string(text)
		}
		if !repeats(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// repeats reports whether a line equals the line before it, or is a command that was already run
// since its container was started.
func repeats(lines []string, line string) bool {
	words := strings.Fields(line)
	for i, other := range slices.Backward(lines) {
		switch {
		case other == line && (i == len(lines)-1 || words[0] == "ExecSync"):
			return true
		case len(words) > 1 && strings.HasPrefix(other, "CreateContainer "+words[1]+" "):
			return false
		}
	}
	return false
}

// ordered returns the lines of a text in the order in which they are compared. For each step, the
// requests that are not commands come first, and then all requests of each container. Concurrent
// requests are sorted: starts of regular containers, resizes, stops, and probes of one container.
func (s *kubeletStory) ordered(text string) (all []string) {
	var step string
	var pod []string
	containers := map[string][]string{}
	end := func() {
		s.sortConcurrent(pod)
		all = append(all, step)
		all = append(all, pod...)
		for _, name := range slices.Sorted(maps.Keys(containers)) {
			s.sortConcurrent(containers[name])
			all = append(all, "of "+name)
			all = append(all, containers[name]...)
		}
		pod, containers = nil, map[string][]string{}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "\t") {
			end()
			step = line
			continue
		}
		if words[0] != "ExecSync" {
			pod = append(pod, line)
		}
		if len(words) > 1 && words[0] != "UpdatePodSandboxResources" {
			containers[words[1]] = append(containers[words[1]], line)
		}
	}
	end()
	return all
}

func (s *kubeletStory) sortConcurrent(lines []string) {
	for from := 0; from < len(lines); {
		to := from + 1
		for kind := s.concurrentWith(lines[from]); kind != "" && to < len(lines) && s.concurrentWith(lines[to]) == kind; {
			to++
		}
		slices.Sort(lines[from:to])
		from = to
	}
}

// concurrentWith returns the requests that may be in progress at the same time as a request.
func (s *kubeletStory) concurrentWith(line string) string {
	switch words := strings.Fields(line); words[0] {
	case "StopContainer", "UpdateContainerResources":
		return words[0]
	case "CreateContainer", "StartContainer":
		if slices.Contains(s.regular, words[1]) {
			return "start"
		}
	case "ExecSync":
		if strings.HasPrefix(words[2], `["alive"`) || strings.HasPrefix(words[2], `["ready"`) {
			return "probe"
		}
	}
	return ""
}
