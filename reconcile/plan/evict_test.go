package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// evictable returns an input with a running pod that has this grace period and preStop hook.
func evictable(grace, preStop string) Input {
	pod := &manifest.Pod{
		Key: types.NamespacedName{Namespace: "default", Name: "big"}, UID: "u", Hash: "v1:a",
		Object: &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "app", Image: "a"}}}},
	}
	return Input{
		Desired: pod, Now: time.Unix(1000, 0),
		Node: Node{RuntimeReachable: true, RuntimeReady: true, NetworkReady: true},
		Observed: []runtime.Incarnation{{
			Sandbox: runtime.Sandbox{ID: "s", UID: "u", Ready: true, Annotations: map[string]string{
				runtime.AnnotationPodHash: "v1:a", runtime.AnnotationGracePeriod: grace,
			}},
			Containers: []runtime.Container{{
				ID: "c", Name: "app", State: runtime.Running, Annotations: map[string]string{runtime.AnnotationPreStopHandler: preStop},
			}},
		}},
	}
}

// TestEvict checks that an evicted pod fails permanently, regardless of its restart policy,
// and that an eviction applies only to the version with its UID and hash.
func TestEvict(t *testing.T) {
	in := evictable("30", "")
	for _, test := range []struct {
		uid     types.UID
		hash    string
		evicted bool
	}{{"u", "v1:a", true}, {"another", "v1:a", false}, {"u", "v1:before", false}} {
		in.Eviction = &Eviction{UID: test.uid, Hash: test.hash, Message: "too big"}
		d := Next(in)
		if got := d.Finished != nil && d.Finished.Failed && d.Finished.Reason == "Evicted"; got != test.evicted {
			t.Errorf("evicting uid %q, hash %q: got evicted %v, want %v\n%v", test.uid, test.hash, got, test.evicted, d)
		}
		if got := d.Phase == PhaseWindDown && d.NeedsUser; got != test.evicted {
			t.Errorf("evicting uid %q, hash %q: phase is WindDown and NeedsUser is true: got %v, want %v\n%v", test.uid, test.hash, got, test.evicted, d)
		}
	}
}

// TestEvictGrace checks the grace periods of an evicted pod. Unless the eviction has a grace
// period, the preStop hooks get one second, and the stop of a container gets two seconds.
func TestEvictGrace(t *testing.T) {
	for name, test := range map[string]struct {
		grace, preStop string
		begun          time.Duration // time since the eviction
		edited         bool
		soft           time.Duration // grace period of the eviction
		want           string
	}{
		"soft threshold": {grace: "600", soft: 20 * time.Second, want: "stop app within 20s"},
		"soft threshold and a shorter grace period": {grace: "5", soft: 20 * time.Second, want: "stop app within 5s"},
		"no hook":                   {grace: "600", want: "stop app within 2s"},
		"a hook":                    {grace: "600", preStop: `{"exec":{"command":["x"]}}`, want: "run the preStop hook of app within 1s"},
		"time of the hook is over":  {grace: "600", preStop: `{"exec":{"command":["x"]}}`, begun: time.Second, want: "stop app within 2s"},
		"time of the sleep is over": {grace: "600", preStop: `{"sleep":{"seconds":60}}`, begun: time.Second, want: "stop app within 2s"},
		"zero grace period":         {grace: "0", want: "stop sandbox"},
		"edited meanwhile":          {grace: "600", begun: 500 * time.Millisecond, edited: true, want: "stop app within 2s"},
		"podd was restarted":        {grace: "600", begun: time.Hour, want: "stop app within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			in := evictable(test.grace, test.preStop)
			if fin := (&PodEnd{UID: "u", Hash: "v1:a", Size: in.Desired.PodSize(), Failed: true, Reason: ReasonEvicted, At: in.Now.Add(-test.begun), Grace: test.soft}); test.begun > 0 {
				in.History.Finished = fin
			} else {
				in.Eviction = &Eviction{UID: "u", Hash: "v1:a", Message: "too big", Grace: test.soft}
			}
			in.FirstObservedAt = in.Now
			if test.edited {
				in.Desired = nil
				in.SourcesRead = true
			}
			d := Next(in)
			var got []string
			for _, a := range d.Actions {
				text, _, _ := strings.Cut(a.String(), " (")
				got = append(got, text)
			}
			if len(got) != 1 || got[0] != test.want {
				t.Errorf("got actions %q, want %q\n%s", got, test.want, d)
			}
		})
	}
}

// TestEvict_DeadlineInShutdown checks that a pod that was stopped at its deadline stays Failed for
// that reason when the node shuts down. Otherwise the pod would run again afterwards. A pod that
// still runs is terminated with the grace period of the shutdown.
func TestEvict_DeadlineInShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		active time.Duration
		runs   bool
		want   string
	}{
		"running before the deadline": {time.Minute, true, ReasonTerminated},
		"running after the deadline":  {time.Hour, true, ReasonTerminated},
		"stopped before the deadline": {time.Minute, false, ReasonTerminated},
		"stopped after the deadline":  {time.Hour, false, ReasonDeadlineExceeded},
	} {
		in := evictable("30", "")
		in.Desired.Object.Spec.ActiveDeadlineSeconds = new(int64(600))
		in.History.StartTime = in.Now.Add(-test.active)
		in.Eviction = &Eviction{UID: "u", Hash: "v1:a", Reason: ReasonTerminated, Grace: time.Second}
		if !test.runs {
			in.Observed[0].Ready = false
			in.Observed[0].Containers[0].State = runtime.Exited
		}
		if d := Next(in); d.Finished == nil || d.Finished.Reason != test.want {
			t.Errorf("%s: got end %+v, want reason %s", name, d.Finished, test.want)
		}
	}
}

func TestEvict_StorageLimit(t *testing.T) {
	in := evictable("30", "")
	in.Eviction = &Eviction{UID: "u", Hash: "v1:a", StorageLimit: "emptydirfs.limit"}
	if d := Next(in); d.Finished == nil || d.Finished.StorageLimit != "emptydirfs.limit" {
		t.Errorf("got PodEnd %+v, want one with the storage limit of the eviction", d.Finished)
	}
}

// TestEvict_Shortage checks the PodEnd of a pod that was evicted under node pressure: it contains
// the shortage. The explanation for users names the signal and its amounts.
func TestEvict_Shortage(t *testing.T) {
	in := evictable("30", "")
	in.Eviction = &Eviction{UID: "u", Hash: "v1:a", Message: "The node was low on resource: memory. ", Shortage: Shortage{"memory.available", "50Mi", "100Mi"}}
	d := Next(in)
	if d.Finished == nil || d.Finished.Shortage != in.Eviction.Shortage || d.Finished.Message != in.Eviction.Message {
		t.Fatalf("got PodEnd %+v, want one with the message and the shortage of the eviction", d.Finished)
	}
	if want := "evicted because of memory.available: 50Mi available, threshold 100Mi"; d.Why != want || d.Reason != ReasonEvicted {
		t.Errorf("got reason %s and explanation %q, want reason %s and explanation %q", d.Reason, d.Why, ReasonEvicted, want)
	}
}

// TestEvict_Restarts checks which evicted pods run again, and that they wait for the end of their
// back-off and for admission.
func TestEvict_Restarts(t *testing.T) {
	waits := Verdict{Answer: Wait, Reason: "NodePressure", Message: "the node has the condition [DiskPressure]"}
	for name, test := range map[string]struct {
		policy          v1.RestartPolicy
		runsOnce, final bool
		evictions       int           // earlier evictions
		ran             time.Duration // since the start of the pod
		after           time.Duration // since the eviction
		transition      time.Duration
		verdict         Verdict
		resumes         bool
		resume          bool // whether the decision starts the pod again
		wake            time.Duration
		why             string
	}{
		"back-off":                   {policy: v1.RestartPolicyAlways, after: 9 * time.Second, resumes: true, wake: 10 * time.Second, why: "too big; the pod starts again after a back-off"},
		"after the back-off":         {policy: v1.RestartPolicyAlways, after: 10 * time.Second, resumes: true, resume: true, why: "too big. "},
		"OnFailure":                  {policy: v1.RestartPolicyOnFailure, after: 10 * time.Second, resumes: true, resume: true, why: "too big. "},
		"Never":                      {policy: v1.RestartPolicyNever, after: time.Hour, why: "too big. "},
		"pod of a cluster":           {policy: v1.RestartPolicyAlways, runsOnce: true, after: time.Hour, why: "too big. "},
		"final eviction":             {policy: v1.RestartPolicyAlways, final: true, after: time.Hour, why: "too big. "},
		"third eviction":             {policy: v1.RestartPolicyAlways, evictions: 2, after: 39 * time.Second, resumes: true, wake: 40 * time.Second, why: "too big; the pod starts again after a back-off"},
		"third eviction, ran longer": {policy: v1.RestartPolicyAlways, evictions: 2, ran: 10 * time.Minute, after: 10 * time.Second, resumes: true, resume: true, why: "too big. "},
		"transition period":          {policy: v1.RestartPolicyAlways, transition: time.Minute, after: 59 * time.Second, resumes: true, wake: time.Minute, why: "too big; the pod starts again after the transition period of the node pressure"},
		"after the transition":       {policy: v1.RestartPolicyAlways, transition: time.Minute, after: time.Minute, resumes: true, resume: true, why: "too big. "},
		"back-off and transition":    {policy: v1.RestartPolicyAlways, transition: time.Minute, after: 9 * time.Second, resumes: true, wake: 10 * time.Second, why: "too big; the pod starts again after a back-off"},
		"node pressure":              {policy: v1.RestartPolicyAlways, transition: time.Minute, after: time.Second * 50, verdict: waits, resumes: true, why: "too big; the pod waits to start again: the node has the condition [DiskPressure]"},
	} {
		in := evictable("30", "")
		in.Desired.Traits.RunsOnce, in.Desired.Object.Spec.RestartPolicy = test.runsOnce, test.policy
		in.History.StartTime, in.History.Evictions = in.Now.Add(-test.ran), test.evictions
		in.Eviction = &Eviction{UID: "u", Hash: "v1:a", Message: "too big. ", Restarts: !test.final, Transition: test.transition}
		fin := Next(in).Finished
		if fin == nil || fin.Resumes != test.resumes || fin.WaitsForRestart() != test.resumes {
			t.Errorf("%s: got PodEnd %+v, want Resumes %v", name, fin, test.resumes)
			continue
		}
		evicted := in.Now
		in.History.Finished, in.Verdict, in.Now = fin, test.verdict, in.Now.Add(test.after)
		in.Observed[0].Ready, in.Observed[0].Containers[0].State = false, runtime.Exited
		d := Next(in)
		if d.Resume != test.resume || d.Why != test.why || d.Reason != ReasonEvicted || !d.NeedsUser {
			t.Errorf("%s: got Resume %v, reason %q, explanation %q and NeedsUser %v; want Resume %v, reason %q, explanation %q and NeedsUser true\n%s", name, d.Resume, d.Reason, d.Why, d.NeedsUser, test.resume, ReasonEvicted, test.why, d)
		}
		if test.wake > 0 && !d.WakeAt.Equal(evicted.Add(test.wake)) {
			t.Errorf("%s: got the wake time %s after the eviction, want %s", name, d.WakeAt.Sub(evicted), test.wake)
		}
	}
}

// TestPodEnd_Journal checks that the journal contains why a pod was evicted or preempted, so that a restart
// of podd does not change what it reports.
func TestPodEnd_Journal(t *testing.T) {
	for _, want := range []PodEnd{
		{Reason: ReasonEvicted, StorageLimit: "emptydirfs.limit"},
		{Reason: ReasonEvicted, Shortage: Shortage{Signal: "memory.available", Available: "50Mi", Threshold: "100Mi"}, Transition: time.Minute},
		{Reason: ReasonPreempted, Resource: v1.ResourceCPU},
	} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got PodEnd
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Errorf("got %+v from the journal, error %v; want %+v", got, err, want)
		}
	}
}

// TestEvict_Overdue checks which pods still run long after the grace period with which the node stops them:
// after one and a half grace periods, and at least 10 seconds.
func TestEvict_Overdue(t *testing.T) {
	for name, test := range map[string]struct {
		end     PodEnd
		deleted bool // the pod was evicted while it was being deleted
		overdue time.Duration
	}{
		"evicted":               {end: PodEnd{Reason: ReasonEvicted}, overdue: 10 * time.Second},
		"evicted, soft":         {end: PodEnd{Reason: ReasonEvicted, Grace: 20 * time.Second}, overdue: 30 * time.Second},
		"preempted":             {end: PodEnd{Reason: ReasonPreempted}, overdue: 45 * time.Second},
		"node shutdown":         {end: PodEnd{Reason: ReasonTerminated, Grace: 10 * time.Second}, overdue: 15 * time.Second},
		"evicted while deleted": {end: PodEnd{Grace: 20 * time.Second}, deleted: true, overdue: 30 * time.Second},
		"deadline":              {end: PodEnd{Reason: ReasonDeadlineExceeded}},
		"completed":             {},
	} {
		in := evictable("30", "")
		start := in.Now
		if test.deleted {
			in.Desired, in.SourcesRead = nil, true
			in.Deletion = (&Deletion{UID: "u", Grace: time.Hour, At: start}).WithEviction(&Eviction{UID: "u", Grace: test.end.Grace}, start)
			in.History.Stopping = &SandboxTermination{SandboxID: in.Observed[0].ID, Since: start, Grace: time.Hour}
		} else {
			test.end.UID, test.end.Hash, test.end.Size, test.end.At, test.end.Failed = "u", "v1:a", in.Desired.PodSize(), start, true
			in.History.Finished = &test.end
		}
		in.Now = start.Add(test.overdue - 1)
		before := Next(in)
		wantUID := types.UID("u")
		if in.Now = start.Add(test.overdue); test.overdue == 0 {
			in.Now, wantUID = start.Add(time.Hour), ""
		} else if before.WakeAt.IsZero() || before.WakeAt.After(in.Now) {
			t.Errorf("%s: got the next decision %s after the eviction, want it after %s", name, before.WakeAt.Sub(start), test.overdue)
		}
		after := Next(in)
		if before.OverdueUID != "" || after.OverdueUID != wantUID {
			t.Errorf("%s: got overdue pods %q before and %q after %s, want none and %q", name, before.OverdueUID, after.OverdueUID, test.overdue, wantUID)
		}
	}
}

// TestKillEvicted checks which pods podd kills without the runtime an hour after the beginning of their
// stop. A pod that was not evicted, a pod that runs again after its eviction, and a pod of another agent
// must not be killed.
func TestKillEvicted(t *testing.T) {
	end := func(in *Input, reason string) {
		in.History.Finished = &PodEnd{UID: "u", Hash: "v1:a", Size: in.Desired.PodSize(), Failed: true, Reason: reason, At: in.Now.Add(-time.Hour)}
	}
	remove := func(in *Input, e *Eviction) {
		in.Desired, in.SourcesRead = nil, true
		in.Deletion = &Deletion{UID: "u", Grace: time.Second, At: in.Now.Add(-time.Hour), Eviction: e}
	}
	for name, test := range map[string]struct {
		change func(*Input)
		kills  bool
	}{
		"evicted":                        {func(in *Input) { end(in, ReasonEvicted) }, true},
		"evicted, runtime unreachable":   {func(in *Input) { end(in, ReasonEvicted); in.Node.RuntimeReachable = false }, true},
		"evicted, podd restarted":        {func(in *Input) { end(in, ReasonEvicted); in.FirstObservedAt = in.Now.Add(-6 * time.Second) }, false},
		"evicted, podd restarted before": {func(in *Input) { end(in, ReasonEvicted); in.FirstObservedAt = in.Now.Add(-7 * time.Second) }, true},
		"evicted, then deleted":          {func(in *Input) { end(in, ReasonEvicted); in.Desired, in.SourcesRead = nil, true }, true},
		"evicted, sources not read":      {func(in *Input) { end(in, ReasonEvicted); in.Desired = nil }, false},
		"evicted, containers exited":     {func(in *Input) { end(in, ReasonEvicted); in.Observed[0].Ready, in.Observed[0].Containers = false, nil }, false},
		"evicted before a resize":        {func(in *Input) { end(in, ReasonEvicted); in.History.Finished.Size = "other" }, false},
		"earlier version evicted":        {func(in *Input) { end(in, ReasonEvicted); in.History.Finished.Hash = "v1:before" }, false},
		"evicted, sandbox foreign":       {func(in *Input) { end(in, ReasonEvicted); in.Observed[0].Foreign = true }, false},
		"preempted":                      {func(in *Input) { end(in, ReasonPreempted) }, false},
		"node shutdown":                  {func(in *Input) { end(in, ReasonTerminated) }, false},
		"deadline":                       {func(in *Input) { end(in, ReasonDeadlineExceeded) }, false},
		"running":                        {func(*Input) {}, false},
		"deleted":                        {func(in *Input) { remove(in, nil) }, false},
		"deleted, then evicted":          {func(in *Input) { remove(in, &Eviction{UID: "u"}) }, true},
		"deleted, then preempted":        {func(in *Input) { remove(in, &Eviction{UID: "u", Reason: ReasonPreempted}) }, false},
		"evicted while deleted, desired": {func(in *Input) { p := in.Desired; remove(in, &Eviction{UID: "u"}); in.Desired = p }, false},
	} {
		for _, kind := range []KillProgress{0, ContainersFound, ProcessesKilled, VolumesReleased} {
			in := evictable("30", "")
			test.change(&in)
			in.History.Kills = map[string]KillProgress{"s": kind}
			want := []Action{KillProcesses{UID: "u", SandboxID: "s"}, KillProcesses{UID: "u", SandboxID: "s", WereFound: true}, ReleaseVolumes{UID: "u", SandboxID: "s"}, nil}[kind]
			var got Action
			for _, a := range Next(in).Actions {
				if a.Verb() == "kill" || a.Verb() == "empty" {
					got = a
				}
			}
			if !test.kills {
				want = nil
			}
			if got != want {
				t.Errorf("%s, progress %d: got action %v, want %v", name, kind, got, want)
			}
		}
	}
}

// TestKillEvicted_VolumesInUse checks that the volumes of a killed pod are not released while another
// process of the pod may use them.
func TestKillEvicted_VolumesInUse(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"a start in progress":  func(in *Input) { in.InFlight = map[string]Action{"container/x": StartContainer{Container: "x"}} },
		"an unknown container": func(in *Input) { in.MayHaveUnobserved = true },
		"a canceled start":     func(in *Input) { in.DirsInUse = map[types.UID]bool{"u": true} },
		"a second running sandbox": func(in *Input) {
			twin := in.Observed[0]
			twin.ID, twin.Attempt = "t", 1
			in.Observed = append(in.Observed, twin)
		},
	} {
		in := evictable("30", "")
		in.History.Finished = &PodEnd{UID: "u", Hash: "v1:a", Size: in.Desired.PodSize(), Failed: true, Reason: ReasonEvicted, At: in.Now.Add(-time.Hour)}
		in.History.Kills = map[string]KillProgress{"s": ProcessesKilled}
		change(&in)
		for _, a := range Next(in).Actions {
			if a.Verb() == "empty" {
				t.Errorf("%s: got action %v, want the volumes kept", name, a)
			}
		}
	}
}
