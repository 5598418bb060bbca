package event

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

var at = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func web() *manifest.Pod {
	p := &manifest.Pod{Key: types.NamespacedName{Namespace: "default", Name: "web-node"}, UID: "u", Hash: "v1:h", Object: &v1.Pod{}}
	p.Object.Spec.InitContainers = []v1.Container{{Name: "first"}}
	p.Object.Spec.Containers = []v1.Container{{Name: "app"}}
	return p
}

// format returns a line "Type Reason field: message" for each event.
func format(all []Event) string {
	var lines []string
	for _, e := range all {
		if e.Pod.Name != "web-node" && e.Pod.Name != "" || e.Time != at {
			return fmt.Sprintf("unexpected event: got pod %v and time %v, want pod web-node or none, and time %v", e.Pod, e.Time, at)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, e.FieldPath, e.Message))
	}
	return strings.Join(lines, "\n")
}

type volumeError struct{}

func (volumeError) Error() string                  { return "preparing it" }
func (volumeError) MountFailure() (string, string) { return "disk", "no such path" }

// TestNewGroupProgressEvent checks the first event and a later event of a slow change.
func TestNewGroupProgressEvent(t *testing.T) {
	s := NewSubject(web(), at)
	for first, want := range map[bool]string{
		true:  "Warning VolumePermissionChangeInProgress : Setting volume ownership for u/volumes/v is taking longer than expected, consider using OnRootMismatch (fsGroupChangePolicy)",
		false: "Warning VolumePermissionChangeInProgress : Setting volume ownership for u/volumes/v, processed 5 files.",
	} {
		if got := format([]Event{s.NewGroupProgressEvent("u/volumes/v", first, 5)}); got != want {
			t.Errorf("got event %s, want %s", got, want)
		}
	}
}

// TestForOutcome checks that the outcome of each action causes the kubelet's events.
func TestForOutcome(t *testing.T) {
	failed := errors.New("it broke")
	image := plan.EnsureImage{Container: "first", Image: "i:1"}
	start := plan.StartContainer{Container: "app"}
	for name, c := range map[string]struct {
		o    Outcome
		want string
	}{
		"status of the sandbox": {Outcome{Action: plan.RunSandbox{}, Err: fmt.Errorf("creating the sandbox: %w", failed), StatusErr: failed},
			"Warning FailedPodSandBoxStatus : Unable to get pod sandbox status: it broke"},
		"present": {Outcome{Action: image}, `Normal Pulled spec.initContainers{first}: Container image "i:1" already present on machine`},
		"pulled": {Outcome{Action: image, ContactedRegistry: true, Pull: &Pull{1234567 * time.Microsecond, 2 * time.Second, 42}},
			`Normal Pulled spec.initContainers{first}: Successfully pulled image "i:1" in 1.234s (2s including waiting). Image size: 42 bytes.`},
		"pull failed": {Outcome{Action: image, Err: failed, ContactedRegistry: true, BacksOff: true, Reason: "ErrImagePull"},
			`Warning Failed spec.initContainers{first}: Failed to pull image "i:1": it broke
Warning Failed spec.initContainers{first}: Error: ErrImagePull
Normal BackOff spec.initContainers{first}: Back-off pulling image "i:1"
Warning Failed spec.initContainers{first}: Error: ImagePullBackOff`},
		"failed for another pod": {Outcome{Action: image, Err: failed, BacksOff: true, Reason: "ErrImagePull"},
			`Normal BackOff spec.initContainers{first}: Back-off pulling image "i:1"
Warning Failed spec.initContainers{first}: Error: ImagePullBackOff`},
		"credentials": {Outcome{Action: image, Err: failed, Reason: "ErrImagePull"},
			`Warning Failed spec.initContainers{first}: Failed to pull image "i:1": it broke
Warning Failed spec.initContainers{first}: Error: ErrImagePull`},
		"never": {Outcome{Action: image, Err: failed, Reason: "ErrImageNeverPull"},
			`Warning ErrImageNeverPull spec.initContainers{first}: Container image "i:1" is not present with pull policy of Never
Warning Failed spec.initContainers{first}: Error: ErrImageNeverPull`},
		"invalid name": {Outcome{Action: image, Err: failed, Reason: "InvalidImageName"},
			`Warning InspectFailed spec.initContainers{first}: Failed to apply default image tag "i:1": it broke
Warning Failed spec.initContainers{first}: Error: InvalidImageName`},
		"inspect": {Outcome{Action: image, Err: failed, Reason: "ImageInspectError"},
			`Warning InspectFailed spec.initContainers{first}: Failed to inspect image "i:1": it broke
Warning Failed spec.initContainers{first}: Error: ImageInspectError`},
		"started":       {Outcome{Action: start}, "Normal Created spec.containers{app}: Created container: app\nNormal Started spec.containers{app}: Started container app"},
		"start resumed": {Outcome{Action: plan.StartContainer{Container: "app", CreatedID: "c"}}, "Normal Started spec.containers{app}: Started container app"},
		"not created":   {Outcome{Action: start, Err: failed, Reason: "CreateContainerError"}, "Warning Failed spec.containers{app}: Error: it broke"},
		"not started": {Outcome{Action: start, Err: failed, Reason: runContainerError},
			"Normal Created spec.containers{app}: Created container: app\nWarning Failed spec.containers{app}: Error: it broke"},
		"volumes":        {Outcome{Action: plan.PrepareVolumes{}, Err: failed}, "Warning FailedMount : Unable to attach or mount volumes: it broke"},
		"two volumes":    {Outcome{Action: plan.UpdateVolumes{}, Err: fmt.Errorf("all: %w", errors.Join(volumeError{}, volumeError{}))}, strings.Repeat("Warning FailedMount : MountVolume.SetUp failed for volume \"disk\" : no such path\n", 2)},
		"edit's volumes": {Outcome{Action: plan.CheckVolumes{}, Err: volumeError{}}, `Warning FailedMount : MountVolume.SetUp failed for volume "disk" : no such path`},
		"sandbox":        {Outcome{Action: plan.RunSandbox{}, Err: failed}, "Warning FailedCreatePodSandBox : Failed to create pod sandbox: it broke"},
		"postStart":      {Outcome{Action: plan.RunPostStart{Container: "app"}, Err: failed}, "Warning FailedPostStartHook spec.containers{app}: PostStartHook failed"},
		"preStop":        {Outcome{Action: plan.RunPreStop{Container: "app"}, Err: failed}, "Warning FailedPreStopHook spec.containers{app}: PreStopHook failed"},
		"plain hook": {Outcome{Action: plan.RunPreStop{Container: "app"}, HookPlainHost: "10.0.0.1:443"},
			"Warning LifecycleHTTPFallback : request to HTTPS lifecycle hook 10.0.0.1:443 got HTTP response, retry with HTTP succeeded"},
		"stop":           {Outcome{Action: plan.StopContainer{}, Err: failed}, "Warning FailedKillPod : error killing pod: it broke"},
		"stop sandbox":   {Outcome{Action: plan.StopSandbox{}, Err: failed}, "Warning FailedKillPod : error killing pod: it broke"},
		"remove":         {Outcome{Action: plan.RemoveContainer{}, Err: failed}, "Warning ContainerGCFailed : it broke"},
		"remove sandbox": {Outcome{Action: plan.RemoveSandbox{}, Err: failed}, "Warning ContainerGCFailed : it broke"},
		"success":        {Outcome{Action: plan.RunSandbox{}}, ""},
	} {
		c.o.Subject = NewSubject(web(), at)
		if got := format(ForOutcome(c.o)); got != strings.TrimSpace(c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestForProbe covers each kind of probe and each result except a pass without a warning.
func TestForProbe(t *testing.T) {
	for _, c := range []struct {
		kind    plan.ProbeKind
		o       plan.ProbeResult
		warning bool
		want    string
	}{
		{plan.LivenessProbe, plan.ProbeResult{Passed: true}, false, ""},
		{plan.LivenessProbe, plan.ProbeResult{Message: "exit 1"}, false, "Warning Unhealthy spec.containers{app}: Liveness probe failed: exit 1"},
		{plan.StartupProbe, plan.ProbeResult{Errored: true, Message: "no port"}, false, "Warning Unhealthy spec.containers{app}: Startup probe errored and resulted in unknown state: no port"},
		{plan.ReadinessProbe, plan.ProbeResult{Passed: true, Message: "redirect"}, true, "Warning ProbeWarning spec.containers{app}: Readiness probe warning: redirect"},
	} {
		if got := format(ForProbe(NewSubject(web(), at), plan.RunProbe{Container: "app", Kind: c.kind}, c.o, c.warning)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestForDecision checks that each difference between two decisions is reported once.
func TestForDecision(t *testing.T) {
	never := web()
	never.Object.Spec.RestartPolicy = v1.RestartPolicyNever
	own := web()
	own.Object.Spec.RestartPolicy = v1.RestartPolicyNever
	own.Object.Spec.Containers = []v1.Container{{Name: "app", RestartPolicy: new(v1.ContainerRestartPolicyOnFailure)}}
	running := []runtime.Incarnation{{
		Sandbox: runtime.Sandbox{ID: "s", UID: "u", Annotations: map[string]string{runtime.AnnotationPodHash: "v1:h"}},
		Containers: []runtime.Container{
			{ID: "1", Name: "first", State: runtime.Running, Annotations: map[string]string{runtime.AnnotationContainerKind: "sidecar:0"}},
			{ID: "2", Name: "app", State: runtime.Running, Annotations: map[string]string{runtime.AnnotationContainerKind: "container:0"}},
			{ID: "3", Name: "app", State: runtime.Exited},
		},
	}}
	liveness := plan.Decision{Terminations: map[string]plan.Termination{"2": {Since: at}}, Steps: []plan.Step{{Container: "app", Probe: plan.LivenessProbe}}}
	wait := func(reason, why string) plan.Decision {
		return plan.Decision{Phase: plan.PhaseWait, NeedsUser: true, Reason: reason, Why: why}
	}
	held := func(until time.Time) plan.Decision {
		return plan.Decision{Steps: []plan.Step{{Container: "app", Crashes: 2, Until: until}}}
	}
	const backOff = "Warning BackOff spec.containers{app}: Back-off restarting failed container app in pod web-node_default(u)"
	const overdue = "Warning ExceededGracePeriod : Container runtime did not kill the pod within specified grace period."
	for name, c := range map[string]struct {
		d    DecisionChange
		want string
	}{
		"stopped": {DecisionChange{Pod: web(), After: plan.Decision{Stopping: &plan.SandboxTermination{SandboxID: "s"}}},
			"Normal Killing spec.initContainers{first}: Stopping container first\nNormal Killing spec.containers{app}: Stopping container app"},
		"stopped, no manifest": {DecisionChange{After: plan.Decision{Stopping: &plan.SandboxTermination{SandboxID: "s"}}},
			"Normal Killing spec.initContainers{first}: Stopping container first\nNormal Killing spec.containers{app}: Stopping container app"},
		"other sandbox stopped": {DecisionChange{Pod: web(), After: plan.Decision{Stopping: &plan.SandboxTermination{SandboxID: "other"}}}, ""},
		"one stopping already":  {DecisionChange{Pod: web(), Terminations: map[string]plan.Termination{"1": {}}, After: plan.Decision{Stopping: &plan.SandboxTermination{SandboxID: "s"}}}, "Normal Killing spec.containers{app}: Stopping container app"},
		"liveness":              {DecisionChange{Pod: web(), After: liveness}, "Normal Killing spec.containers{app}: Container app failed liveness probe, will be restarted"},
		"liveness, never":       {DecisionChange{Pod: never, After: liveness}, "Normal Killing spec.containers{app}: Container app failed liveness probe"},
		"liveness, own policy":  {DecisionChange{Pod: own, After: liveness}, "Normal Killing spec.containers{app}: Container app failed liveness probe, will be restarted"},
		"restart requested":     {DecisionChange{Pod: web(), After: plan.Decision{Terminations: liveness.Terminations, Steps: []plan.Step{{Container: "app"}}}}, "Normal Killing spec.containers{app}: Stopping container app"},
		"hook":                  {DecisionChange{Pod: web(), After: plan.Decision{Terminations: liveness.Terminations, Steps: []plan.Step{{Container: "app", Reason: "PostStartHookError"}}}}, "Normal Killing spec.containers{app}: FailedPostStartHook"},
		"crashed":               {DecisionChange{Pod: web(), After: held(at)}, backOff},
		"still held":            {DecisionChange{Pod: web(), Before: held(at), After: held(at)}, ""},
		"crashed again":         {DecisionChange{Pod: web(), Before: held(at), After: held(at.Add(1))}, backOff},
		"sandbox lost":          {DecisionChange{Pod: web(), After: plan.Decision{Rule: plan.RuleSandboxLost}}, "Normal SandboxChanged : Pod sandbox changed, it will be killed and re-created."},
		"sandbox still lost":    {DecisionChange{Pod: web(), Before: plan.Decision{Rule: plan.RuleSandboxLost}, After: plan.Decision{Rule: plan.RuleSandboxLost}}, ""},
		"evicted":               {DecisionChange{Pod: web(), After: plan.Decision{Finished: &plan.PodEnd{Reason: "Evicted", Message: "too big"}}}, "Warning Evicted : too big\nNormal Killing spec.initContainers{first}: Stopping container first\nNormal Killing spec.containers{app}: Stopping container app"},
		"shutdown":              {DecisionChange{Pod: web(), After: plan.Decision{Finished: &plan.PodEnd{Reason: "Terminated", Message: "it goes down"}}}, "Normal Killing spec.initContainers{first}: Stopping container first\nNormal Killing spec.containers{app}: Stopping container app"},
		"finished":              {DecisionChange{Pod: web(), Observed: []runtime.Incarnation{{}}, After: plan.Decision{Finished: &plan.PodEnd{}}}, ""},
		"deadline":              {DecisionChange{Pod: web(), Observed: []runtime.Incarnation{{}}, After: plan.Decision{Finished: &plan.PodEnd{Reason: "DeadlineExceeded", Message: "too long"}}}, "Normal DeadlineExceeded : too long"},
		"no network":            {DecisionChange{Pod: web(), After: wait("NetworkNotReady", "no CNI")}, "Warning NetworkNotReady : network is not ready: no CNI"},
		"no network, still":     {DecisionChange{Pod: web(), Before: wait("NetworkNotReady", "no CNI"), After: wait("NetworkNotReady", "no CNI")}, ""},
		"no room":               {DecisionChange{Pod: web(), After: wait("OutOfcpu", "all is taken")}, "Warning OutOfcpu : all is taken"},
		"name taken":            {DecisionChange{Pod: web(), After: wait("NameInUse", "by others")}, "Warning FailedSync : by others"},
		"runtime not ready":     {DecisionChange{Pod: web(), After: wait("", "no runtime")}, ""},
		"overdue":               {DecisionChange{Pod: web(), Before: plan.Decision{Rule: plan.RuleFinished}, After: plan.Decision{OverdueUID: "u"}}, overdue},
		"overdue at the start":  {DecisionChange{Pod: web(), After: plan.Decision{OverdueUID: "u"}}, ""},
		"still overdue":         {DecisionChange{Pod: web(), Before: plan.Decision{OverdueUID: "u"}, After: plan.Decision{OverdueUID: "u"}}, ""},
		"overdue, no manifest":  {DecisionChange{Before: plan.Decision{Rule: plan.RuleFinished}, After: plan.Decision{OverdueUID: "u"}}, overdue},
		"edit waits":            {DecisionChange{Pod: web(), After: plan.Decision{WhyRule: plan.RuleEditWaits, NeedsUser: true, Why: "for an image"}}, "Warning FailedSync : for an image"},
		"edit pulls an image":   {DecisionChange{Pod: web(), After: plan.Decision{WhyRule: plan.RuleEditWaits, Why: "pulling image"}}, ""},
	} {
		if c.d.Observed == nil {
			c.d.Observed = running
		}
		c.d.Key, c.d.At = web().Key, at
		if got := format(ForDecision(c.d)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestForDecision_EvictionAnnotations checks that only the event of an evicted pod has the
// annotations of the eviction, and only if the eviction is of this version of the pod.
func TestForDecision_EvictionAnnotations(t *testing.T) {
	annotations := map[string]string{"starved_resource": "memory"}
	for name, test := range map[string]struct {
		hash, reason string
		want         map[string]string
	}{
		"evicted":         {"v1:h", plan.ReasonEvicted, annotations},
		"earlier version": {"v1:earlier", plan.ReasonEvicted, nil},
		"other reason":    {"v1:h", plan.ReasonDeadlineExceeded, nil},
	} {
		got := ForDecision(DecisionChange{
			Key: web().Key, Pod: web(), At: at,
			Eviction: &plan.Eviction{UID: "u", Hash: test.hash, EventAnnotations: annotations},
			Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: "u", Annotations: map[string]string{runtime.AnnotationPodHash: "v1:h"}},
				Containers: []runtime.Container{{ID: "1", Name: "app", State: runtime.Running}}}},
			After: plan.Decision{Finished: &plan.PodEnd{Reason: test.reason, Message: "too big"}},
		})
		if len(got) != 2 {
			t.Fatalf("%s: got %d events, want 2: the end of the pod and the stop of its container", name, len(got))
		}
		if !maps.Equal(got[0].Annotations, test.want) || got[1].Annotations != nil {
			t.Errorf("%s: got the annotations %q of the end and %q of the stop; want %q and none", name, got[0].Annotations, got[1].Annotations, test.want)
		}
	}
}

// TestMessage checks that messages are valid UTF-8 of limited length.
func TestMessage(t *testing.T) {
	for _, given := range []string{strings.Repeat("ä", 600), "\xff" + strings.Repeat("€", 400), "short"} {
		got := NewSubject(web(), at).NewNormalEvent("R", "", given).Message
		if len(got) > maxMessageBytes || !utf8.ValidString(got) || len(given) < maxMessageBytes && len(got) < len(given) {
			t.Errorf("message of %d bytes: got %d bytes: %q; want valid UTF-8 of at most %d bytes", len(given), len(got), got, maxMessageBytes)
		}
	}
}

// TestForProblems_Order checks that an invalid file is reported for each of its pods, sorted
// by name.
func TestForProblems_Order(t *testing.T) {
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}, Problems: []manifest.Problem{{Severity: manifest.Error, Path: "f", Message: "broken"}}}
	for _, name := range []string{"b/a", "a/c", "a/b", "c/a", "a/a"} {
		p := web()
		p.Key.Namespace, p.Key.Name, _ = strings.Cut(name, "/")
		p.Origin.Path = "f"
		set.Pods[p.Key] = p
	}
	var got []string
	for _, e := range ForProblems(nil, set, at) {
		got = append(got, e.Pod.String())
	}
	if want := "a/a a/b a/c b/a c/a"; strings.Join(got, " ") != want {
		t.Errorf("got events of %v, want %s", got, want)
	}
}
