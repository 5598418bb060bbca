package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/runtime"
)

// factsOf are those of a pod whose only container runs.
func factsOf(c v1.Container) Facts {
	c.Name = "main"
	p := &manifest.Pod{UID: "u1", Hash: "v1:h", Spec: &v1.Pod{}}
	p.Spec.Spec.RestartPolicy = v1.RestartPolicyAlways
	p.Spec.Spec.Containers = []v1.Container{c}
	return Facts{
		Pod: p, Now: epoch, RuntimeName: "containerd", HostIPs: []string{"192.0.2.1", "2001:db8::1"},
		Containers: map[string]ContainerFacts{},
		Observed: []runtime.Incarnation{{
			Sandbox:    runtime.Sandbox{ID: "s", UID: "u1", Ready: true, IPs: []string{"10.88.0.3"}},
			Containers: []runtime.Container{{ID: "c", Name: "main", State: runtime.Running, StartedAt: epoch}},
		}},
	}
}

func TestProbes(t *testing.T) {
	yes, no := true, false
	probe := &v1.Probe{}
	tests := []struct {
		name               string
		readiness, startup *v1.Probe
		ready, started     *bool
		wantReady, want    bool // want: started
	}{
		{"no probes", nil, nil, nil, nil, true, true},
		{"readiness not asked yet", probe, nil, nil, nil, false, true},
		{"readiness yes", probe, nil, &yes, nil, true, true},
		{"readiness no", probe, nil, &no, nil, false, true},
		{"startup not asked yet", nil, probe, nil, nil, false, false},
		{"startup yes", nil, probe, nil, &yes, true, true},
		{"startup no, readiness yes", probe, probe, &yes, &no, false, false},
	}
	for _, tt := range tests {
		f := factsOf(v1.Container{ReadinessProbe: tt.readiness, StartupProbe: tt.startup})
		f.Containers["main"] = ContainerFacts{Ready: tt.ready, Started: tt.started}
		c := Of(f).ContainerStatuses[0]
		if c.Ready != tt.wantReady || *c.Started != tt.want {
			t.Errorf("%s: got ready %v, started %v; want %v, %v", tt.name, c.Ready, *c.Started, tt.wantReady, tt.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	tests := []struct {
		name       string
		host, ips  []string
		hostNet    bool
		wantHost   string
		wantPodIPs string
	}{
		{"one of each family, the node's first", []string{"192.0.2.1"}, []string{"fd00::3", "10.0.0.3", "10.0.0.4"}, false, "192.0.2.1", "10.0.0.3 fd00::3"},
		{"a node of IPv6", []string{"2001:db8::1"}, []string{"10.0.0.3", "fd00::3"}, false, "2001:db8::1", "fd00::3 10.0.0.3"},
		{"nothing known of the node", nil, []string{"fd00::3", "10.0.0.3"}, false, "", "10.0.0.3 fd00::3"},
		{"host network", []string{"192.0.2.1", "2001:db8::1"}, nil, true, "192.0.2.1", "192.0.2.1 2001:db8::1"},
		{"odd forms", []string{"192.0.2.1"}, []string{"junk", "::ffff:10.0.0.3", "FD00:0::3"}, false, "192.0.2.1", "10.0.0.3 fd00::3"},
	}
	for _, tt := range tests {
		f := factsOf(v1.Container{})
		f.HostIPs, f.Observed[0].IPs = tt.host, tt.ips
		f.Pod.Spec.Spec.HostNetwork = tt.hostNet
		s := Of(f)
		var ips []string
		for _, ip := range s.PodIPs {
			ips = append(ips, ip.IP)
		}
		if got := strings.Join(ips, " "); got != tt.wantPodIPs || s.HostIP != tt.wantHost || s.PodIP != ips[0] {
			t.Errorf("%s: got %q on %q, want %q on %q", tt.name, got, s.HostIP, tt.wantPodIPs, tt.wantHost)
		}
	}
}

// TestOthersDoNotCount: of another UID, another version, another podd.
func TestOthersDoNotCount(t *testing.T) {
	for name, change := range map[string]func(*runtime.Incarnation){
		"UID":     func(i *runtime.Incarnation) { i.UID = "u2" },
		"version": func(i *runtime.Incarnation) { i.Annotations = map[string]string{runtime.AnnotationHash: "v1:old"} },
		"foreign": func(i *runtime.Incarnation) { i.Foreign = true },
	} {
		f := factsOf(v1.Container{})
		change(&f.Observed[0])
		if s := Of(f); s.Phase != v1.PodPending || s.ContainerStatuses[0].State.Waiting == nil {
			t.Errorf("another %s: got %s, %+v", name, s.Phase, s.ContainerStatuses[0].State)
		}
	}
	f := factsOf(v1.Container{})
	f.Observed[0].ID = "" // a container whose sandbox is gone counts
	if s := Of(f); s.ContainerStatuses[0].State.Running == nil {
		t.Errorf("without a sandbox: got %+v", s.ContainerStatuses[0].State)
	}
}

func TestReadinessGates(t *testing.T) {
	for _, tt := range []struct {
		name       string
		conditions []v1.PodCondition
		want       v1.ConditionStatus
		message    string
	}{
		{"missing", nil, v1.ConditionFalse, `corresponding condition of pod readiness gate "lb" does not exist.`},
		{"false", []v1.PodCondition{{Type: "lb", Status: v1.ConditionFalse}}, v1.ConditionFalse, `the status of pod readiness gate "lb" is not "True", but False`},
		{"true", []v1.PodCondition{{Type: "lb", Status: v1.ConditionTrue}}, v1.ConditionTrue, ""},
	} {
		f := factsOf(v1.Container{})
		f.Pod.Spec.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "lb"}}
		f.Pod.Spec.Status.Conditions = append(tt.conditions, v1.PodCondition{Type: v1.PodReady, Status: "Stale"})
		conditions := Of(f).Conditions
		if len(conditions) != 5+len(tt.conditions) {
			t.Errorf("%s: got %d conditions", tt.name, len(conditions))
		}
		for _, c := range conditions {
			if c.Type == v1.PodReady && (c.Status != tt.want || c.Message != tt.message) {
				t.Errorf("%s: got %s %q, want %s %q", tt.name, c.Status, c.Message, tt.want, tt.message)
			}
			if c.Type == v1.ContainersReady && c.Status != v1.ConditionTrue {
				t.Errorf("%s: containers are ready whatever the gates say", tt.name)
			}
		}
	}
}

// TestMessagesShare: one pod's termination messages have 12 KiB together.
func TestMessagesShare(t *testing.T) {
	f := factsOf(v1.Container{})
	f.Pod.Spec.Spec.Containers = append(f.Pod.Spec.Spec.Containers, v1.Container{Name: "b"}, v1.Container{Name: "c"}, v1.Container{Name: "d"}, v1.Container{Name: "e"})
	r := &f.Observed[0].Containers[0]
	r.State, r.Message = runtime.Exited, strings.Repeat("ü", 5000)
	got := Of(f).ContainerStatuses[0].State.Terminated.Message
	if want := 12 << 10 / 5; len(got) > want || len(got) < want-1 || !strings.HasPrefix(r.Message, got) {
		t.Errorf("got %d bytes, want %d at most and whole characters", len(got), want)
	}
}

// TestTransitions: a condition keeps its time until its status flips.
func TestTransitions(t *testing.T) {
	f := factsOf(v1.Container{})
	s := Of(f)
	f.Previous, f.Now = &s, epoch.Add(time.Minute)
	f.Observed[0].Containers[0].State = runtime.Exited
	flipped := map[v1.PodConditionType]bool{}
	for i, c := range Of(f).Conditions {
		flipped[c.Type] = !c.LastTransitionTime.Equal(&s.Conditions[i].LastTransitionTime)
	}
	want := map[v1.PodConditionType]bool{
		v1.PodReady: true, v1.ContainersReady: true,
		v1.PodInitialized: false, v1.PodScheduled: false, v1.PodReadyToStartContainers: false,
	}
	if diff := cmp.Diff(want, flipped); diff != "" {
		t.Errorf("flipped: (-want +got)\n%s", diff)
	}
}

// TestMonotonicNow: a reading of the monotonic clock in Now changes nothing.
func TestMonotonicNow(t *testing.T) {
	f := factsOf(v1.Container{})
	f.Now = time.Now()
	bare := f
	bare.Now = f.Now.Round(0)
	if diff := cmp.Diff(Of(bare), Of(f)); diff != "" {
		t.Error(diff)
	}
}

// TestRememberedCount: the worker's count stands in for lost records, and a
// record wins over it.
func TestRememberedCount(t *testing.T) {
	f := factsOf(v1.Container{})
	exit := &v1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", ContainerID: "old", FinishedAt: metav1.NewTime(epoch)}
	f.Containers["main"] = ContainerFacts{Restarts: 7, LastExit: exit}
	f.Observed[0].Containers[0].Attempt = 8
	c := Of(f).ContainerStatuses[0]
	if c.RestartCount != 8 || c.LastTerminationState.Terminated.ContainerID != "containerd://old" {
		t.Errorf("with a record: got %d, %+v", c.RestartCount, c.LastTerminationState.Terminated)
	}
	f.Observed = nil
	c = Of(f).ContainerStatuses[0]
	if c.RestartCount != 7 || c.State.Waiting == nil || c.LastTerminationState.Terminated.ExitCode != 2 {
		t.Errorf("without: got %d, %+v", c.RestartCount, c.State)
	}
	f.Terminating = true
	if c = Of(f).ContainerStatuses[0]; c.State.Terminated == nil || c.ContainerID != "containerd://old" {
		t.Errorf("ending: got %+v", c)
	}
}
