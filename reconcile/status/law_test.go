package status

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/runtime"
	"podd/server/kube/table"
)

// drawPod returns a pod with up to two init containers, one sidecar and one or two regular
// containers.
func drawPod(t *rapid.T) *manifest.Pod {
	p := &manifest.Pod{UID: "u1", Hash: "v1:h", Object: &v1.Pod{}}
	spec := &p.Object.Spec
	spec.RestartPolicy = rapid.SampledFrom([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}).Draw(t, "policy")
	spec.HostNetwork = rapid.Bool().Draw(t, "hostNetwork")
	for _, name := range []string{"i", "s", "j"} {
		if rapid.Bool().Draw(t, name) {
			c := v1.Container{Name: name}
			if name == "s" {
				c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
			}
			spec.InitContainers = append(spec.InitContainers, c)
		}
	}
	spec.Containers = []v1.Container{{Name: "b"}, {Name: "a"}}[:rapid.IntRange(1, 2).Draw(t, "containers")]
	if rapid.Bool().Draw(t, "ephemeral") {
		spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e"}}}
	}
	return p
}

// drawTime draws a time near epoch. A third of the times are later than epoch.
func drawTime(t *rapid.T) time.Time {
	return epoch.Add(time.Duration(rapid.Int64Range(-20e9, 10e9).Draw(t, "time")))
}

// drawRecord returns a record of the runtime.
func drawRecord(t *rapid.T, name, id string) runtime.Container {
	c := runtime.Container{
		Name: name, ID: id, Attempt: uint32(rapid.IntRange(0, 2).Draw(t, "attempt")), CreatedAt: drawTime(t),
		State: rapid.SampledFrom([]runtime.ContainerState{runtime.Created, runtime.Running, runtime.Exited, runtime.ExitCodeUnknown, runtime.Unknown}).Draw(t, "state"),
	}
	if c.State != runtime.Created {
		c.StartedAt = drawTime(t)
	}
	if c.State == runtime.Exited {
		c.FinishedAt = drawTime(t)
		c.ExitCode = rapid.SampledFrom([]int32{0, 1, 137}).Draw(t, "code")
		c.Message = rapid.SampledFrom([]string{"", "why", strings.Repeat("ü", 10000)}).Draw(t, "message")
	}
	return c
}

func containerNames(p *manifest.Pod) []string {
	var all []string
	for _, c := range slices.Concat(p.Object.Spec.InitContainers, p.Object.Spec.Containers, ephemeralContainers(&p.Object.Spec)) {
		all = append(all, c.Name)
	}
	return all
}

// drawFacts returns random facts about p.
func drawFacts(t *rapid.T, p *manifest.Pod) Facts {
	f := Facts{
		Pod: p, RuntimeName: "cri", Now: drawTime(t), HostIPs: []string{"192.0.2.1"},
		Containers:  map[string]ContainerFacts{},
		Terminating: rapid.IntRange(0, 5).Draw(t, "terminating") == 0,
		StartTime:   rapid.SampledFrom([]time.Time{{}, epoch}).Draw(t, "start"),
	}
	if rapid.IntRange(0, 5).Draw(t, "failed") == 0 {
		f.FailureReason = &Reason{"Evicted", "pressure"}
	}
	for attempt := range rapid.IntRange(0, 2).Draw(t, "sandboxes") {
		inc := runtime.Incarnation{Sandbox: runtime.Sandbox{
			ID: fmt.Sprint("sandbox", attempt), UID: "u1", Attempt: uint32(attempt),
			Ready: rapid.Bool().Draw(t, "ready"), IPs: []string{"10.88.0.3"}[:rapid.IntRange(0, 1).Draw(t, "ips")],
		}}
		for _, name := range containerNames(p) {
			for i := range rapid.IntRange(0, 2).Draw(t, "records") {
				inc.Containers = append(inc.Containers, drawRecord(t, name, fmt.Sprint(name, attempt, i)))
			}
		}
		f.Observed = append([]runtime.Incarnation{inc}, f.Observed...)
	}
	for _, name := range containerNames(p) {
		var c ContainerFacts
		if rapid.Bool().Draw(t, "waiting") {
			c.Waiting = Reason{"CrashLoopBackOff", "back-off"}
		}
		c.IsStarting = f.FailureReason == nil && rapid.IntRange(0, 3).Draw(t, "starting") == 0
		if rapid.IntRange(0, 3).Draw(t, "recorded") == 0 {
			c.Restarts = 1
			c.LastExit = &v1.ContainerStateTerminated{
				ExitCode: rapid.SampledFrom([]int32{0, 1}).Draw(t, "code"), ContainerID: name + rapid.SampledFrom([]string{"00", "01", "x"}).Draw(t, "id"),
				FinishedAt: metav1.NewTime(drawTime(t)),
			}
		}
		f.Containers[name] = c
	}
	return f
}

// TestLaws draws sequences of facts and checks each status against the laws.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		var previous *v1.PodStatus
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			f := drawFacts(t, p)
			f.Previous = previous
			before := snapshot(f)
			s := Compute(f)
			if diff := cmp.Diff(before, snapshot(f)); diff != "" {
				t.Fatalf("Compute modified the facts (-before +after):\n%s", diff)
			}
			checkStatus(t, f, s)
			f.Previous = s.DeepCopy()
			if diff := cmp.Diff(s, Compute(f)); diff != "" {
				t.Fatalf("second Compute with the first status as Previous (-first +second):\n%s", diff)
			}
			f.Now = f.Now.Add(time.Hour)
			checkStableOverTime(t, f, s)
			pod := p.Object.DeepCopy()
			pod.Status = s
			if r := table.NewPodCells(pod, f.Now); r.Status == "" || !strings.Contains(r.Ready, "/") {
				t.Fatalf("row of kubectl's table: got %+v, want a status and a count of ready containers", r)
			}
			previous = &s
		}
	})
}

// checkStableOverTime checks that the status stays the same if no fact changes except Now. It checks
// nothing if the runtime reported a time in the hour before the new Now, or later.
func checkStableOverTime(t *rapid.T, f Facts, s v1.PodStatus) {
	for _, inc := range f.Observed {
		for _, c := range inc.Containers {
			if c.StartedAt.After(f.Now.Add(-time.Hour)) || c.FinishedAt.After(f.Now.Add(-time.Hour)) {
				return
			}
		}
	}
	if diff := cmp.Diff(s, Compute(f)); diff != "" {
		t.Fatalf("status an hour later (-before +after):\n%s", diff)
	}
}

// checkStatus checks the form of a status and its relation to the facts.
func checkStatus(t *rapid.T, f Facts, s v1.PodStatus) {
	checkWholeSeconds(t, reflect.ValueOf(s))
	types := []v1.PodConditionType{}
	for _, c := range s.Conditions {
		types = append(types, c.Type)
	}
	want := []v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Fatalf("types of conditions (-want +got):\n%s", diff)
	}
	var order []string
	running := false
	for _, c := range s.EphemeralContainerStatuses {
		if c.Ready || c.Started != nil {
			t.Fatalf("got ephemeral container %+v, want neither started nor ready", c)
		}
	}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses) {
		order = append(order, c.Name)
		if c.Name == "e" {
			continue
		}
		running = running || c.State.Running != nil
		if c.Ready && c.State.Waiting != nil || c.Started == nil {
			t.Fatalf("got container %+v, want started set and not ready while waiting", c)
		}
	}
	if len(order) > 0 && fmt.Sprint(order) != fmt.Sprint(containerNames(f.Pod)) {
		t.Fatalf("got statuses of %v, want the order of the manifest %v", order, containerNames(f.Pod))
	}
	if f.Previous == nil && running && (s.Phase == v1.PodFailed || s.Phase == v1.PodSucceeded) {
		t.Fatalf("got phase %s while a container runs, want Pending or Running", s.Phase)
	}
	checkPhase(t, f, s)
	checkWithoutEphemeral(t, f, s)
}

// checkWithoutEphemeral checks that an ephemeral container does not affect the status of
// its pod.
func checkWithoutEphemeral(t *rapid.T, f Facts, s v1.PodStatus) {
	if len(f.Pod.Object.Spec.EphemeralContainers) == 0 || f.FailureReason != nil { // a rejected pod has no container statuses
		return
	}
	f.Pod, f.Observed = f.Pod.WithEphemeral(nil), slices.Clone(f.Observed)
	for i := range f.Observed {
		inc := &f.Observed[i]
		inc.Containers = slices.DeleteFunc(slices.Clone(inc.Containers), func(c runtime.Container) bool { return c.Name == "e" })
	}
	without := Compute(f)
	if diff := cmp.Diff(without.Conditions, s.Conditions); diff != "" || without.Phase != s.Phase {
		t.Fatalf("got phase %s, want %s as without the ephemeral container; conditions (-without +with)\n%s", s.Phase, without.Phase, diff)
	}
}

// checkPhase checks that a terminal phase is final unless a regular container runs again.
func checkPhase(t *rapid.T, f Facts, s v1.PodStatus) {
	if f.FailureReason == nil && isFinal(f.Previous) && s.Phase != f.Previous.Phase && !observe(&f).isRegularRunning() {
		t.Fatalf("got phase %s, want %s as before", s.Phase, f.Previous.Phase)
	}
	ready := map[v1.PodConditionType]v1.ConditionStatus{}
	for _, c := range s.Conditions {
		ready[c.Type] = c.Status
	}
	if (s.Phase == v1.PodFailed || s.Phase == v1.PodSucceeded) && ready[v1.PodReady] == v1.ConditionTrue {
		t.Fatalf("got phase %s and the condition Ready true, want false", s.Phase)
	}
}

// checkWholeSeconds checks that every metav1.Time in v has whole seconds.
func checkWholeSeconds(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			checkWholeSeconds(t, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkWholeSeconds(t, v.Index(i))
		}
	case reflect.Struct:
		if at, ok := v.Interface().(metav1.Time); ok {
			if at.Nanosecond() != 0 || at.Location() != time.UTC {
				t.Fatalf("got time %v, want whole seconds in UTC", at)
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				checkWholeSeconds(t, v.Field(i))
			}
		}
	}
}

// TestFinishedIsFinal checks that the phase of a finished pod does not depend on the
// records of the runtime.
func TestFinishedIsFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t, drawPod(t))
		f.FailureReason = nil
		f.FinalPhase = rapid.SampledFrom([]v1.PodPhase{v1.PodSucceeded, v1.PodFailed}).Draw(t, "finished")
		if s := Compute(f); s.Phase != f.FinalPhase {
			t.Fatalf("got phase %s, want %s", s.Phase, f.FinalPhase)
		}
	})
}
