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

// runningFacts returns the facts of a pod with one container, which runs.
func runningFacts(c v1.Container) Facts {
	c.Name = "main"
	p := &manifest.Pod{UID: "u1", Hash: "v1:h", Object: &v1.Pod{}}
	p.Object.Spec.RestartPolicy = v1.RestartPolicyAlways
	p.Object.Spec.Containers = []v1.Container{c}
	return Facts{
		Pod: p, Now: epoch, RuntimeName: "containerd", HostIPs: []string{"192.0.2.1", "2001:db8::1"},
		Containers: map[string]ContainerFacts{},
		Observed: []runtime.Incarnation{{
			Sandbox:    runtime.Sandbox{ID: "s", UID: "u1", Ready: true, IPs: []string{"10.88.0.3"}},
			Containers: []runtime.Container{{ID: "c", Name: "main", State: runtime.Running, StartedAt: epoch}},
		}},
	}
}

// TestProbes checks Ready and Started by the probes of a container and their results.
func TestProbes(t *testing.T) {
	yes, no := true, false
	probe := &v1.Probe{}
	tests := []struct {
		name               string
		readiness, startup *v1.Probe
		ready, started     *bool
		wantReady, want    bool // want is the value of Started
	}{
		{"no probes", nil, nil, nil, nil, true, true},
		{"readiness without result", probe, nil, nil, nil, false, true},
		{"readiness yes", probe, nil, &yes, nil, true, true},
		{"readiness no", probe, nil, &no, nil, false, true},
		{"startup without result", nil, probe, nil, nil, false, false},
		{"startup yes", nil, probe, nil, &yes, true, true},
		{"startup no, readiness yes", probe, probe, &yes, &no, false, false},
	}
	for _, tt := range tests {
		f := runningFacts(v1.Container{ReadinessProbe: tt.readiness, StartupProbe: tt.startup})
		f.Containers["main"] = ContainerFacts{Ready: tt.ready, Started: tt.started}
		c := Compute(f).ContainerStatuses[0]
		if c.Ready != tt.wantReady || *c.Started != tt.want {
			t.Errorf("%s: got ready %v, started %v; want %v, %v", tt.name, c.Ready, *c.Started, tt.wantReady, tt.want)
		}
	}
}

// TestReadyToStartCondition checks the reason and the message of PodReadyToStartContainers, which are
// those of the kubelet.
func TestReadyToStartCondition(t *testing.T) {
	ready := runtime.Incarnation{Sandbox: runtime.Sandbox{ID: "s1", UID: "u1", Attempt: 1, Ready: true, IPs: []string{"10.88.0.3"}}}
	change := func(f func(*runtime.Incarnation)) runtime.Incarnation {
		i := ready
		f(&i)
		return i
	}
	dead := change(func(i *runtime.Incarnation) { i.Ready = false })
	withoutIP := change(func(i *runtime.Incarnation) { i.IPs = nil })
	older := change(func(i *runtime.Incarnation) { i.ID, i.Attempt = "s0", 0 })
	olderDead := change(func(i *runtime.Incarnation) { i.ID, i.Attempt, i.Ready = "s0", 0, false })
	foreign := change(func(i *runtime.Incarnation) { i.ID, i.Foreign = "s0", true })
	withoutSandbox := change(func(i *runtime.Incarnation) { i.Sandbox = runtime.Sandbox{UID: "u1"} })
	for name, tt := range map[string]struct {
		observed    []runtime.Incarnation
		hostNetwork bool
		want        string // the message; "" means that the condition is true
	}{
		"ready":                           {observed: []runtime.Incarnation{ready}},
		"ready in the host network":       {observed: []runtime.Incarnation{withoutIP}, hostNetwork: true},
		"ready after a dead one":          {observed: []runtime.Incarnation{ready, olderDead}},
		"ready with a foreign one":        {observed: []runtime.Incarnation{ready, foreign}},
		"none":                            {want: "no pod sandbox exists"},
		"only a foreign one":              {observed: []runtime.Incarnation{foreign}, want: "no pod sandbox exists"},
		"only containers without sandbox": {observed: []runtime.Incarnation{withoutSandbox}, want: "no pod sandbox exists"},
		"dead":                            {observed: []runtime.Incarnation{dead}, want: "pod sandbox is not ready"},
		"dead, older one is ready":        {observed: []runtime.Incarnation{dead, older}, want: "pod sandbox is not ready"},
		"two ready ones":                  {observed: []runtime.Incarnation{ready, older}, want: "multiple pod sandboxes are ready and need to be reconciled"},
		"no address":                      {observed: []runtime.Incarnation{withoutIP}, want: "pod sandbox has no IP address"},
	} {
		t.Run(name, func(t *testing.T) {
			f := runningFacts(v1.Container{})
			f.Observed, f.Pod.Object.Spec.HostNetwork = tt.observed, tt.hostNetwork
			want := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
			if tt.want != "" {
				want.Status, want.Reason, want.Message = v1.ConditionFalse, "PodSandboxNotReady", tt.want
			}
			for _, got := range Compute(f).Conditions {
				if got.LastTransitionTime = (metav1.Time{}); got.Type == want.Type && got != want {
					t.Errorf("got condition %+v, want %+v", got, want)
				}
			}
		})
	}
}

// TestAddresses checks the order and the form of the addresses.
func TestAddresses(t *testing.T) {
	tests := []struct {
		name       string
		host, ips  []string
		hostNet    bool
		wantHost   string
		wantPodIPs string
	}{
		{"one address of each family, that of the node first", []string{"192.0.2.1"}, []string{"fd00::3", "10.0.0.3", "10.0.0.4"}, false, "192.0.2.1", "10.0.0.3 fd00::3"},
		{"an IPv6 node", []string{"2001:db8::1"}, []string{"10.0.0.3", "fd00::3"}, false, "2001:db8::1", "fd00::3 10.0.0.3"},
		{"unknown node addresses", nil, []string{"fd00::3", "10.0.0.3"}, false, "", "10.0.0.3 fd00::3"},
		{"host network", []string{"192.0.2.1", "2001:db8::1"}, nil, true, "192.0.2.1", "192.0.2.1 2001:db8::1"},
		{"unusual forms", []string{"192.0.2.1"}, []string{"junk", "::ffff:10.0.0.3", "FD00:0::3"}, false, "192.0.2.1", "10.0.0.3 fd00::3"},
	}
	for _, tt := range tests {
		f := runningFacts(v1.Container{})
		f.HostIPs, f.Observed[0].IPs = tt.host, tt.ips
		f.Pod.Object.Spec.HostNetwork = tt.hostNet
		s := Compute(f)
		var ips []string
		for _, ip := range s.PodIPs {
			ips = append(ips, ip.IP)
		}
		if got := strings.Join(ips, " "); got != tt.wantPodIPs || s.HostIP != tt.wantHost || s.PodIP != ips[0] {
			t.Errorf("%s: got pod addresses %q and host address %q, want pod addresses %q and host address %q", tt.name, got, s.HostIP, tt.wantPodIPs, tt.wantHost)
		}
	}
}

// TestUser_FollowsRuntime checks that a status has the identity that the runtime reports, even
// after the container has exited. If the runtime reports no identity, the status has none.
func TestUser_FollowsRuntime(t *testing.T) {
	for name, tt := range map[string]struct {
		state runtime.ContainerState
		user  *runtime.User
		want  *v1.ContainerUser
	}{
		"running":  {runtime.Running, &runtime.User{UID: 1000, GID: 2000, Groups: []int64{2000, 4000}}, &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1000, GID: 2000, SupplementalGroups: []int64{2000, 4000}}}},
		"exited":   {runtime.Exited, &runtime.User{}, &v1.ContainerUser{Linux: &v1.LinuxContainerUser{}}},
		"unknown":  {runtime.Running, nil, nil},
		"no Linux": {runtime.Created, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := runningFacts(v1.Container{})
			f.Pod.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			f.Observed[0].Containers[0].State, f.Observed[0].Containers[0].User = tt.state, tt.user
			s := Compute(f)
			if diff := cmp.Diff(tt.want, s.ContainerStatuses[0].User); diff != "" {
				t.Errorf("user (-want +got):\n%s", diff)
			}
			if u := s.ContainerStatuses[0].User; u != nil && tt.user.Groups != nil && &u.Linux.SupplementalGroups[0] == &tt.user.Groups[0] {
				t.Error("the groups of the status share memory with the observation, want a copy")
			}
			f.Previous = &s
			f.Observed[0].Containers = nil
			if diff := cmp.Diff(tt.want, Compute(f).ContainerStatuses[0].User); diff != "" && tt.state == runtime.Exited {
				t.Errorf("user of a container that the runtime no longer lists (-want +got):\n%s", diff)
			}
		})
	}
}

// TestImage_RuntimeReportsID checks that a container has the image of its manifest if the runtime
// reports only an ID.
func TestImage_RuntimeReportsID(t *testing.T) {
	id := strings.Repeat("79371f7e", 8)
	for reported, want := range map[string]string{
		"registry.example/web:1":     "registry.example/web:1",
		id:                           "web:1",
		"sha256:" + id:               "web:1",
		"web@sha256:" + id:           "web@sha256:" + id,
		"":                           "web:1",
		"registry.example/" + id[:8]: "registry.example/" + id[:8],
	} {
		p := &manifest.Pod{UID: "u", Hash: "v1:0", Object: &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "web:1"}}}}}
		s := Compute(Facts{Pod: p, Now: time.Now(), Observed: []runtime.Incarnation{{
			Sandbox:    runtime.Sandbox{ID: "s", UID: "u", Ready: true, Annotations: map[string]string{runtime.AnnotationPodHash: "v1:0"}},
			Containers: []runtime.Container{{ID: "c", Name: "app", State: runtime.Running, Image: reported}},
		}}})
		if got := s.ContainerStatuses[0].Image; got != want {
			t.Errorf("the runtime reports %q: got %q, want %q", reported, got, want)
		}
	}
}

// TestCompute_OtherIncarnations checks that sandboxes of another UID, another version or
// another podd do not affect the status.
func TestCompute_OtherIncarnations(t *testing.T) {
	for name, change := range map[string]func(*runtime.Incarnation){
		"UID":     func(i *runtime.Incarnation) { i.UID = "u2" },
		"version": func(i *runtime.Incarnation) { i.Annotations = map[string]string{runtime.AnnotationPodHash: "v1:old"} },
		"owner":   func(i *runtime.Incarnation) { i.Foreign = true },
	} {
		f := runningFacts(v1.Container{})
		change(&f.Observed[0])
		if s := Compute(f); s.Phase != v1.PodPending || s.ContainerStatuses[0].State.Waiting == nil {
			t.Errorf("incarnation with another %s: got phase %s and state %+v, want Pending and waiting", name, s.Phase, s.ContainerStatuses[0].State)
		}
	}
	f := runningFacts(v1.Container{})
	f.Observed[0].ID = "" // the runtime no longer lists the sandbox, but still lists its container
	if s := Compute(f); s.ContainerStatuses[0].State.Running == nil {
		t.Errorf("container without its sandbox: got state %+v, want running", s.ContainerStatuses[0].State)
	}
}

// TestReadinessGates checks that a pod is ready only if the conditions of its gates are true.
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
		f := runningFacts(v1.Container{})
		f.Pod.Object.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "lb"}}
		f.Pod.Object.Status.Conditions = append(tt.conditions, v1.PodCondition{Type: v1.PodReady, Status: "Stale"})
		conditions := Compute(f).Conditions
		if len(conditions) != 5+len(tt.conditions) {
			t.Errorf("%s: got %d conditions, want %d", tt.name, len(conditions), 5+len(tt.conditions))
		}
		for _, c := range conditions {
			if c.Type == v1.PodReady && (c.Status != tt.want || c.Message != tt.message) {
				t.Errorf("%s: got %s %q, want %s %q", tt.name, c.Status, c.Message, tt.want, tt.message)
			}
			if c.Type == v1.ContainersReady && c.Status != v1.ConditionTrue {
				t.Errorf("%s: got ContainersReady %s, want True regardless of readiness gates", tt.name, c.Status)
			}
		}
	}
}

// TestMessages_Limit checks that the termination messages of one pod have at most 12 KiB
// in total.
func TestMessages_Limit(t *testing.T) {
	f := runningFacts(v1.Container{})
	f.Pod.Object.Spec.Containers = append(f.Pod.Object.Spec.Containers, v1.Container{Name: "b"}, v1.Container{Name: "c"}, v1.Container{Name: "d"}, v1.Container{Name: "e"})
	r := &f.Observed[0].Containers[0]
	r.State, r.Message = runtime.Exited, strings.Repeat("ü", 5000)
	got := Compute(f).ContainerStatuses[0].State.Terminated.Message
	if want := 12 << 10 / 5; len(got) > want || len(got) < want-1 || !strings.HasPrefix(r.Message, got) {
		t.Errorf("got %d bytes, want at most %d and no partial character", len(got), want)
	}
}

// TestTransitions checks that a condition keeps its time until its status changes.
func TestTransitions(t *testing.T) {
	f := runningFacts(v1.Container{})
	s := Compute(f)
	f.Previous, f.Now = &s, epoch.Add(time.Minute)
	f.Observed[0].Containers[0].State = runtime.Exited
	changed := map[v1.PodConditionType]bool{}
	for i, c := range Compute(f).Conditions {
		changed[c.Type] = !c.LastTransitionTime.Equal(&s.Conditions[i].LastTransitionTime)
	}
	want := map[v1.PodConditionType]bool{
		v1.PodReady: true, v1.ContainersReady: true,
		v1.PodInitialized: false, v1.PodScheduled: false, v1.PodReadyToStartContainers: false,
	}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("changed conditions (-want +got):\n%s", diff)
	}
}

// TestMonotonicNow checks that a monotonic clock reading in Now has no effect.
func TestMonotonicNow(t *testing.T) {
	f := runningFacts(v1.Container{})
	f.Now = time.Now()
	bare := f
	bare.Now = f.Now.Round(0)
	if diff := cmp.Diff(Compute(bare), Compute(f)); diff != "" {
		t.Errorf("status with a monotonic clock reading (-without +with):\n%s", diff)
	}
}

// TestRestartCount_Recorded checks that the restart count is the attempt number of the container in
// the runtime. If the runtime no longer lists the container, podd's recorded count is used.
func TestRestartCount_Recorded(t *testing.T) {
	f := runningFacts(v1.Container{})
	exit := &v1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", ContainerID: "old", FinishedAt: metav1.NewTime(epoch)}
	f.Containers["main"] = ContainerFacts{Restarts: 7, LastExit: exit}
	f.Observed[0].Containers[0].Attempt = 8
	c := Compute(f).ContainerStatuses[0]
	if c.RestartCount != 8 || c.LastTerminationState.Terminated.ContainerID != "containerd://old" {
		t.Errorf("container in the runtime: got restart count %d and last state %+v, want restart count 8 and a last state with container \"old\"", c.RestartCount, c.LastTerminationState.Terminated)
	}
	f.Observed = nil
	c = Compute(f).ContainerStatuses[0]
	if c.RestartCount != 7 || c.State.Waiting == nil || c.LastTerminationState.Terminated.ExitCode != 2 {
		t.Errorf("no container in the runtime: got restart count %d and state %+v, want restart count 7 and a waiting state", c.RestartCount, c.State)
	}
	f.Terminating = true
	if c = Compute(f).ContainerStatuses[0]; c.State.Terminated == nil || c.ContainerID != "containerd://old" {
		t.Errorf("terminating pod: got container status %+v, want a terminated state and container \"old\"", c)
	}
}

// TestPhase_Undecided checks that a pod that lost its container does not fail before podd has decided
// that the pod has finished. podd could not correct a terminal phase without the reason of a rejection.
func TestPhase_Undecided(t *testing.T) {
	f := runningFacts(v1.Container{})
	f.Pod.Object.Spec.RestartPolicy = v1.RestartPolicyNever
	running := Compute(f)
	f.Previous, f.Observed, f.IsUndecided = &running, nil, true
	s := Compute(f)
	if s.Phase != v1.PodPending || s.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("before the decision: got phase %s and state %+v, want Pending and Terminated", s.Phase, s.ContainerStatuses[0].State)
	}
	f.Previous, f.IsUndecided, f.FailureReason = &s, false, &Reason{Reason: "UnexpectedAdmissionError", Message: "no devices"}
	if s := Compute(f); s.Phase != v1.PodFailed || s.Reason != "UnexpectedAdmissionError" {
		t.Errorf("after the rejection: got phase %s, reason %q, want Failed and UnexpectedAdmissionError", s.Phase, s.Reason)
	}
}

// TestInitContainer_NotListed checks the state of an init container that the runtime no longer lists
// although a regular container runs, as after the container was removed while podd did not run.
func TestInitContainer_NotListed(t *testing.T) {
	const unseen = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally"
	always := v1.ContainerRestartPolicyAlways
	exit := func(code int32) *v1.ContainerStateTerminated {
		return &v1.ContainerStateTerminated{ExitCode: code, Reason: "Recorded"}
	}
	tests := []struct {
		name         string
		init         v1.Container
		facts        ContainerFacts
		previous     v1.ContainerState
		previousLast *v1.ContainerStateTerminated
		lists        []runtime.Container
		want         string // reason, or "waiting " and the reason
		message      string
		wantPhase    v1.PodPhase
		last         int32 // exit code of the last termination state; -1 if there is none
	}{
		{name: "exit not observed", want: "Completed", message: unseen, wantPhase: v1.PodRunning, last: -1},
		{name: "successful exit recorded", facts: ContainerFacts{LastExit: exit(0)}, want: "Recorded", wantPhase: v1.PodRunning, last: -1},
		{name: "only an earlier exit recorded", facts: ContainerFacts{LastExit: exit(1)}, want: "Completed", message: unseen, wantPhase: v1.PodRunning, last: 1},
		{name: "running in the previous status", previous: v1.ContainerState{Running: &v1.ContainerStateRunning{}}, want: "Completed", message: unseen, wantPhase: v1.PodRunning, last: -1},
		{name: "not observed before a restart of all containers", previousLast: &v1.ContainerStateTerminated{Reason: "Completed", Message: unseen}, want: "Completed", message: unseen, wantPhase: v1.PodRunning, last: -1},
		{name: "sidecar", init: v1.Container{RestartPolicy: &always}, want: "waiting PodInitializing", wantPhase: v1.PodPending, last: -1},
		{name: "all containers are restarted", facts: ContainerFacts{RestartsWithAll: true}, want: "waiting PodInitializing", wantPhase: v1.PodPending, last: -1},
		{name: "no regular container", lists: []runtime.Container{}, want: "waiting PodInitializing", wantPhase: v1.PodPending, last: -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := runningFacts(v1.Container{})
			tt.init.Name = "init"
			f.Pod.Object.Spec.InitContainers = []v1.Container{tt.init}
			f.Containers["init"] = tt.facts
			f.Previous = &v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{{Name: "init", State: tt.previous, LastTerminationState: v1.ContainerState{Terminated: tt.previousLast}}}}
			if tt.lists != nil {
				f.Observed[0].Containers = tt.lists
			}
			s := Compute(f)
			got, message, last := "", "", int32(-1)
			switch state := s.InitContainerStatuses[0].State; {
			case state.Waiting != nil:
				got = "waiting " + state.Waiting.Reason
			case state.Terminated != nil:
				got, message = state.Terminated.Reason, state.Terminated.Message
			}
			if e := s.InitContainerStatuses[0].LastTerminationState.Terminated; e != nil {
				last = e.ExitCode
			}
			if got != tt.want || message != tt.message || s.Phase != tt.wantPhase || last != tt.last || s.InitContainerStatuses[0].RestartCount != 0 {
				t.Errorf("got %s %q, phase %s, last exit code %d, %d restarts; want %s %q, phase %s, last exit code %d, 0 restarts",
					got, message, s.Phase, last, s.InitContainerStatuses[0].RestartCount, tt.want, tt.message, tt.wantPhase, tt.last)
			}
			f.Previous = &s
			if diff := cmp.Diff(s, Compute(f)); diff != "" {
				t.Errorf("second Compute (-first +second):\n%s", diff)
			}
		})
	}
}

// TestRestartWithoutPolicy checks the status of a container that is restarted although its restart
// policy does not require it. The status must not be terminated, because the API server rejects
// updates from terminated to another state in this case.
func TestRestartWithoutPolicy(t *testing.T) {
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyNever, v1.RestartPolicyOnFailure} {
		f := runningFacts(v1.Container{})
		f.Pod.Object.Spec.RestartPolicy = policy
		f.Now = epoch.Add(time.Minute)
		c := &f.Observed[0].Containers[0]
		c.State, c.StartedAt, c.FinishedAt = runtime.Exited, epoch, epoch.Add(time.Second)
		f.Containers["main"] = ContainerFacts{Waiting: Reason{Reason: "ContainerCreating"}}
		s := Compute(f)
		got := s.ContainerStatuses[0]
		if got.State.Waiting == nil || got.LastTerminationState.Terminated == nil || s.Phase == v1.PodSucceeded || s.Phase == v1.PodFailed {
			t.Errorf("%s: got phase %s, state %v and last state %v; want no final phase, waiting and terminated", policy, s.Phase, got.State, got.LastTerminationState)
		}
	}
}

// TestStopSignal checks that the status has the stop signal of a container in the runtime if the
// container requests one, also after the runtime has lost the container.
func TestStopSignal(t *testing.T) {
	for name, signal := range map[string]*v1.Signal{"requested": new(v1.SIGUSR1), "not requested": nil} {
		f := runningFacts(v1.Container{Lifecycle: &v1.Lifecycle{StopSignal: signal}})
		f.Pod.Object.Spec.RestartPolicy = v1.RestartPolicyNever
		f.Observed[0].Containers[0].State = runtime.Exited
		check := func(state string, want *v1.Signal) v1.PodStatus {
			t.Helper()
			s := Compute(f)
			if got := s.ContainerStatuses[0].StopSignal; (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%s, %s: got %v, want %v", name, state, got, want)
			}
			return s
		}
		s := check("exited", signal)
		f.Previous, f.Observed = &s, nil
		check("not listed any more", signal)
		f.Previous = nil
		check("not created yet", nil)
	}
}
