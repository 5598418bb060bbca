package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/runtime"
)

// FuzzInput builds inputs from the bytes of the fuzzer, including inputs that no worker would
// create. It checks that Next neither panics nor breaks a law for them.
func FuzzInput(f *testing.F) {
	f.Add([]byte{})
	for i := range 8 {
		seed := make([]byte, 200)
		for j := range seed {
			seed[j] = byte(i*37 + j*j*(i+1))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := (&choices{data: data, start: time.Now()}).input()
		before := deepCopy(in)
		d := Next(in)
		if diff := cmp.Diff(before, in); diff != "" {
			t.Fatalf("Next modified its input (-before +after)\n%s", diff)
		}
		if diff := cmp.Diff(d, Next(in)); diff != "" {
			t.Fatalf("second call of Next with the same input: got another decision (-first +second)\n%s", diff)
		}
		if d.UseSuccessor {
			return
		}
		if err := checkLaws(in, d); err != nil {
			t.Fatalf("%v\n%s", err, d)
		}
	})
}

// choices makes values from bytes. When the bytes are used up, it makes zero values.
type choices struct {
	data  []byte
	start time.Time
	ids   int
}

// n returns a number below limit.
func (c *choices) n(limit int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % limit
}

func (c *choices) is() bool { return c.n(2) == 1 }

// near returns a time at most five minutes before or after start.
func (c *choices) near() time.Time {
	return c.start.Add(time.Duration(c.n(120)-60) * 5 * time.Second)
}

// wall returns a time of a wall clock, which may be far from start or zero.
func (c *choices) wall() time.Time {
	return []time.Time{{}, c.start.Round(0), c.near().Round(0), c.start.Round(0).Add(years), c.start.Round(0).Add(-years)}[c.n(5)]
}

var fuzzUIDs, fuzzHashes = []types.UID{"u1", "u2", ""}, []string{"v1:1", "v1:2", ""}

func (c *choices) input() Input {
	in := Input{
		Now: c.start, SourcesRead: c.is(), MayHaveUnobserved: c.is(), ForceStop: c.is(), InFlight: map[string]Action{},
		Node:         Node{RuntimeReachable: c.n(8) > 0, RuntimeReady: c.n(8) > 0, NetworkReady: c.n(8) > 0, AdoptKubeletPods: c.is()},
		JournalError: []string{"", "", "journal cannot be read"}[c.n(3)],
		Verdict:      Verdict{Answer: Answer(c.n(3)), Message: "because"},
		Objects:      c.objects(), SuccessorObjects: c.objects(),
	}
	if c.n(8) > 0 {
		in.Desired = c.pod()
		if c.is() {
			in.Successor = c.pod()
		}
	}
	for range c.n(4) {
		in.Observed = append(in.Observed, c.incarnation())
	}
	for i := range c.n(3) {
		in.PodDirs = append(in.PodDirs, PodDir{UID: fuzzUIDs[i], Hash: fuzzHashes[c.n(3)], MayHaveVolumes: c.is(), KeepUntil: c.near()})
	}
	in.History = c.history(in.Observed)
	for _, a := range []Action{
		RunSandbox{Attempt: uint32(c.n(3))}, StartContainer{Container: "c0", SandboxID: "s1"}, StopContainer{ID: "c2", Container: "c0"},
		EnsureImage{Container: "c0", Image: "a:1"}, PrepareVolumes{UID: "u1"}, UpdateVolumes{UID: "u2", FilesDigest: "1"}, RemoveDir{UID: "u2"}, StopSandbox{ID: "s1"}, RemoveSandbox{ID: "s4"},
	} {
		if c.n(6) == 1 {
			in.InFlight[a.Subject()] = a
		}
	}
	return in
}

func (c *choices) objects() ReferencedObjects {
	return ReferencedObjects{Blocker: refs.Blocker{MissingMessage: []string{"", "", "a Secret"}[c.n(3)]}, FilesDigest: []string{"", "1", "2"}[c.n(3)]}
}

func (c *choices) pod() *manifest.Pod {
	p := &manifest.Pod{UID: fuzzUIDs[c.n(2)], HasFixedUID: c.is(), Hash: fuzzHashes[c.n(2)], Object: &v1.Pod{}}
	s := &p.Object.Spec
	s.RestartPolicy = []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever, ""}[c.n(4)]
	s.HostNetwork = c.is()
	for i := range c.n(3) {
		init := v1.Container{Name: fmt.Sprint("i", i), Image: imageNames[c.n(3)]}
		if c.is() {
			always := v1.ContainerRestartPolicyAlways
			init.RestartPolicy = &always
		}
		s.InitContainers = append(s.InitContainers, init)
	}
	for i := range c.n(4) {
		s.Containers = append(s.Containers, v1.Container{Name: fmt.Sprint("c", i), Image: imageNames[c.n(3)], ImagePullPolicy: []v1.PullPolicy{v1.PullAlways, v1.PullNever, ""}[c.n(3)]})
	}
	for _, container := range containersOf(s) {
		if container.RestartPolicy != nil || strings.HasPrefix(container.Name, "c") {
			container.StartupProbe, container.LivenessProbe, container.ReadinessProbe = c.probe(), c.probe(), c.probe()
			if c.is() {
				container.Lifecycle = &v1.Lifecycle{PostStart: c.hook()}
			}
		}
	}
	for i := range c.n(3) {
		e := debugger(fmt.Sprint("e", i), []string{"", "c0", "i0"}[c.n(3)])
		e.ImagePullPolicy = []v1.PullPolicy{v1.PullAlways, v1.PullNever, ""}[c.n(3)]
		s.EphemeralContainers = append(s.EphemeralContainers, e)
	}
	return p
}

func (c *choices) hook() *v1.LifecycleHandler {
	return []*v1.LifecycleHandler{nil, exec(), sleeps(5), sleeps(-5), {}}[c.n(5)]
}

func (c *choices) probe() *v1.Probe {
	if c.n(3) > 0 {
		return nil
	}
	return &v1.Probe{InitialDelaySeconds: int32(c.n(9)), PeriodSeconds: int32(c.n(9)), FailureThreshold: int32(c.n(4)), SuccessThreshold: int32(c.n(4))}
}

func (c *choices) trial() ProbeState {
	t := ProbeState{Health: []Health{"", ProbePassed, ProbeFailed}[c.n(3)], Consecutive: c.n(4), Passing: c.is(), Errors: c.n(5)}
	if c.is() {
		t.Began = c.start.Add(-time.Duration(c.n(20)) * time.Second)
	}
	return t
}

func (c *choices) id(prefix string) string {
	c.ids++
	return prefix + strconv.Itoa(c.ids)
}

func (c *choices) incarnation() runtime.Incarnation {
	inc := runtime.Incarnation{Sandbox: runtime.Sandbox{
		ID: c.id("s"), UID: fuzzUIDs[c.n(3)], Attempt: uint32(c.n(3)), Ready: c.is(), Foreign: c.n(6) == 1,
		Annotations: map[string]string{
			runtime.AnnotationPodHash:     fuzzHashes[c.n(3)],
			runtime.AnnotationGracePeriod: []string{"", "0", "1", "30", "-1", "99999999999999999999", "x"}[c.n(7)],
		},
	}}
	if c.n(8) == 1 {
		inc.ID, inc.Ready, inc.Annotations = "", false, nil
	}
	for range c.n(4) {
		inc.Containers = append(inc.Containers, runtime.Container{
			ID: c.id("c"), SandboxID: inc.ID, Name: []string{"c0", "c1", "i0", "i1", "x", "e0"}[c.n(6)], Attempt: uint32(c.n(4)),
			State:     []runtime.ContainerState{runtime.Created, runtime.Running, runtime.Exited, runtime.Unknown, runtime.ExitCodeUnknown, ""}[c.n(6)],
			StartedAt: c.wall(), FinishedAt: c.wall(), ExitCode: int32(c.n(3)),
			Annotations: map[string]string{
				runtime.AnnotationBackoffStep:            []string{"", "0", "3", "-4", "2147483647", "y"}[c.n(6)],
				runtime.AnnotationTerminationMessagePath: []string{"", "/m"}[c.n(2)],
				runtime.AnnotationPodRestarts:            []string{"", "1", "2", "-1", "99999999999", "y"}[c.n(6)],
				runtime.AnnotationPreStopHandler:         []string{"", "{}", "null", "x", `{"exec":{"command":["a"]}}`, `{"sleep":{"seconds":7}}`, `{"sleep":{"seconds":-9223372036854775808}}`}[c.n(7)],

				runtime.AnnotationContainerKind: []string{"", "init:0", "sidecar:1", "sidecar:0", "container:0", ":", "z:9", "ephemeral:0"}[c.n(8)],
			},
		})
	}
	return inc
}

func (c *choices) history(observed []runtime.Incarnation) History {
	h := History{
		VolumesReady: c.is(), Containers: map[string]ContainerHistory{}, ExitSeenAt: map[string]time.Time{},
		ReleasedSandboxes: map[string]bool{}, CleanupFailures: map[string]Failure{}, SuccessorImages: map[string]Image{}, ProbeStates: map[string]ContainerProbes{},
		Terminations:   map[string]Termination{},
		SandboxFailure: c.failure(), VolumesFailure: c.failure(), UpdateFailure: c.failure(), WrittenFilesDigest: []string{"", "1"}[c.n(2)],
	}
	for _, name := range []string{"c0", "c1", "i0", "i1", "e0", "e1"} {
		ch := ContainerHistory{Attempt: uint32(c.n(4)), Image: c.image(), StartFailure: c.failure(), EphemeralCreated: c.is()}
		if c.is() {
			ch.LastExit = &Exit{Code: int32(c.n(3)), PodRestarts: uint32(c.n(3))}
		}
		if c.is() {
			ch.PostStart = PostStartState{Attempt: uint32(c.n(4)), Due: c.is(), Failed: c.is(), Since: []time.Time{{}, c.start, c.start.Add(-3 * time.Second)}[c.n(3)]}
		}
		if c.n(5) == 1 {
			ch.RestartRequestedID = fmt.Sprint("c", c.n(12))
		}
		h.Containers[name], h.SuccessorImages[name] = ch, c.image()
	}
	for _, inc := range observed {
		h.ReleasedSandboxes[inc.ID] = c.is()
		h.CleanupFailures["sandbox/"+inc.ID] = c.failure()
		for _, container := range inc.Containers {
			if c.is() {
				h.ProbeStates[container.ID] = ContainerProbes{Since: c.start.Add(-time.Duration(c.n(20)) * time.Second), RanBeforeStart: c.is(), Startup: c.trial(), Liveness: c.trial(), Readiness: c.trial()}
			}
			if c.is() {
				h.Terminations[container.ID] = Termination{Since: c.wall(), Grace: []time.Duration{0, time.Second, graceOf(&inc)}[c.n(3)], HookDone: c.is()}
			}
			if c.is() {
				h.ExitSeenAt[container.ID] = c.start.Add(-time.Duration(c.n(200)) * time.Second)
			}
		}
		if c.n(4) == 1 {
			h.Stopping = &SandboxTermination{SandboxID: inc.ID, Since: c.wall(), Grace: graceOf(&inc)}
		}
	}
	if c.n(4) == 1 {
		h.Finished = &PodEnd{UID: fuzzUIDs[c.n(2)], Hash: fuzzHashes[c.n(2)], Size: "cpu=/ memory=/", Failed: c.is()}
	}
	return h
}

func (c *choices) image() Image {
	i := Image{Name: append([]string{"e:1"}, imageNames...)[c.n(4)], Failure: c.failure(), Used: c.is()}
	if c.is() {
		i.Ref = "sha256:1"
	}
	return i
}

func (c *choices) failure() Failure {
	if c.n(3) > 0 {
		return Failure{}
	}
	return Failure{Count: c.n(9), Message: "it failed", RetryAt: c.near(), IsFinal: c.n(5) == 1}
}
