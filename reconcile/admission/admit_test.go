package admission

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
)

// TestAdmission checks the verdicts for several candidates at once. A candidate is written "NAME
// holds PORT wants PORT": the host port that it has reserved and the host port of its desired
// version, or "-" for none. These words may follow:
//
//	present   the pod is active on the node (Active)
//	yields    the pod is about to release its reservations (Releasing)
//	rests     the pod has finished (Finished)
//	uid X     the UID of the desired version; the default is the name
//	has X     the UID of a pod directory on disk
func TestAdmission(t *testing.T) {
	tests := map[string]struct {
		names []string
		max   int
		want  string // verdicts of the names with a desired version
	}{
		"first by name":                              {[]string{"b holds - wants 80", "a holds - wants 80"}, 0, "b reject, a admit"},
		"present pods first":                         {[]string{"a holds - wants 80", "b holds 80 wants 80 present"}, 0, "a reject, b admit"},
		"port of its own earlier sandbox":            {[]string{"a holds 80 wants 80 present"}, 0, "a admit"},
		"port of a removed pod":                      {[]string{"a holds 80 wants - present yields", "b holds - wants 80"}, 0, "b wait"},
		"port of a pod whose removal is not certain": {[]string{"a holds 80 wants - present", "b holds - wants 80"}, 0, "b reject"},
		"port that an edit releases":                 {[]string{"a holds 80 wants 81 present yields", "b holds - wants 80"}, 0, "a admit, b wait"},
		"port of an edited pod that still pulls":     {[]string{"a holds 80 wants 81 present", "b holds - wants 80"}, 0, "a admit, b reject"},
		"swapped ports":                              {[]string{"a holds 80 wants 81 present yields", "b holds 81 wants 80 present yields"}, 0, "a wait, b wait"},
		"swapped ports, one pod still pulls":         {[]string{"a holds 80 wants 81 present yields", "b holds 81 wants 80 present"}, 0, "a reject, b reject"},
		"ports exchanged in a ring":                  {[]string{"a holds 1 wants 2 present yields", "b holds 2 wants 3 present yields", "c holds 3 wants 1 present yields"}, 0, "a wait, b wait, c wait"},
		"rejected edits keep their ports":            {[]string{"a holds 90 wants 80 present yields", "x holds 80 wants 81 present yields", "z holds 81 wants 81 present"}, 0, "a reject, x reject, z admit"},
		"a rejected edit rejects others":             {[]string{"a holds 1 wants 2 present yields", "b holds 2 wants 3 present yields", "c holds 3 wants 4 present yields", "d holds 4 wants 4 present"}, 0, "a reject, b reject, c reject, d admit"},
		"node full":                                  {[]string{"a holds - wants 1 present", "b holds - wants 2", "c holds - wants 3"}, 2, "a admit, b admit, c reject"},
		"node full, one pod is being stopped":        {[]string{"a holds - wants - present yields", "b holds - wants 2", "c holds - wants 3"}, 1, "b wait, c reject"},
		"present pods exceed the limit":              {[]string{"a holds - wants 1 present", "b holds - wants 2 present"}, 1, "a admit, b admit"},
		"no limit of pods":                           {[]string{"a holds - wants 1", "b holds - wants 2"}, 0, "a admit, b admit"},
		"UID moves to another name":                  {[]string{"a holds - wants - present yields has x", "b holds - wants 1 uid x"}, 0, "b wait"},
		"UID stays":                                  {[]string{"a holds - wants 1 uid x has x", "b holds - wants 2 uid y"}, 0, "a admit, b admit"},
		"swapped UIDs":                               {[]string{"a holds - wants 1 uid y has x present yields", "b holds - wants 2 uid x has y present yields"}, 0, "a wait, b wait"},
		"finished pod reserves nothing":              {[]string{"a holds - wants 80 rests", "b holds - wants 80"}, 1, "a admit, b admit"},
		"rejected pod reserves nothing":              {[]string{"a holds 80 wants 80 present", "b holds - wants 80", "c holds - wants 81"}, 3, "a admit, b reject, c admit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var candidates []candidate
			for _, text := range test.names {
				candidates = append(candidates, parseCandidate(text))
			}
			verdicts := admitAll(candidates, Limits{MaxPods: test.max})
			var got []string
			for _, c := range candidates {
				if v, ok := verdicts[c.Key]; ok {
					got = append(got, c.Key.Name+" "+[]string{"admit", "wait", "reject"}[v.Answer])
					if v.Answer != plan.Admit && (v.Message == "" || v.Reason == "") {
						t.Errorf("%s: got %+v, want a reason and a message", c.Key, v)
					}
				}
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("verdicts:\ngot  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestAdmission_NodeFull checks that the message about a full node names only the flags that limit the
// number of pods.
func TestAdmission_NodeFull(t *testing.T) {
	a, b := parseCandidate("a holds - wants 1 present"), parseCandidate("b holds - wants 2")
	for flags, want := range map[string]string{
		"":                "the node is full: 1 of 1 pods",
		"--pods-per-core": "the node is full: 1 of 1 pods (limited by --pods-per-core)",
	} {
		if got := admitAll([]candidate{a, b}, Limits{MaxPods: 1, MaxPodsFlags: flags})[b.Key].Message; got != want {
			t.Errorf("flags %q: got %q, want %q", flags, got, want)
		}
	}
}

// TestAdmission_NoPods checks that no pod starts if the maximum number of pods is 0, and that a pod
// that is active remains admitted.
func TestAdmission_NoPods(t *testing.T) {
	a, b := parseCandidate("a holds - wants 1 present"), parseCandidate("b holds - wants 2")
	got := admitAll([]candidate{a, b}, Limits{NoPods: true, MaxPodsFlags: "--max-pods"})
	if v := got[a.Key]; v.Answer != plan.Admit {
		t.Errorf("active pod: got verdict %+v, want an admitted pod", v)
	}
	if v, want := got[b.Key], "the node is full: 1 of 0 pods (limited by --max-pods)"; v.Answer != plan.Reject || v.Message != want {
		t.Errorf("new pod: got verdict %+v, want a rejection with the message %q", v, want)
	}
}

// TestAdmission_Shutdown checks that a shutdown rejects only pods that are neither active nor
// finished.
func TestAdmission_Shutdown(t *testing.T) {
	pod := &manifest.Pod{UID: "u", Object: &v1.Pod{}}
	for _, tt := range []struct {
		name           string
		present, rests bool
		want           plan.Verdict
	}{
		{"new pod", false, false, plan.Verdict{Answer: plan.Reject, Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."}},
		{"active pod", true, false, plan.Verdict{}},
		{"finished pod", false, true, plan.Verdict{}},
	} {
		c := candidate{Desired: pod, Active: tt.present, Finished: tt.rests}
		if got := admitAll([]candidate{c}, Limits{ShuttingDown: true})[types.NamespacedName{}]; got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// parseCandidate returns the candidate for a text as in TestAdmission.
func parseCandidate(text string) candidate {
	words := strings.Fields(text)
	c := candidate{Key: types.NamespacedName{Namespace: "default", Name: words[0]}}
	if words[2] != "-" {
		c.ReservedVersions = []*manifest.Pod{withPort(words[2])}
	}
	if words[4] != "-" {
		c.Desired = withPort(words[4])
		c.Desired.UID = types.UID(words[0])
	}
	for i, word := range words {
		switch word {
		case "present":
			c.Active = true
		case "rests":
			c.Finished = true
		case "yields":
			c.Releasing = true
		case "uid":
			c.Desired.UID = types.UID(words[i+1])
		case "has":
			c.UIDs = []types.UID{types.UID(words[i+1])}
		}
	}
	return c
}

func withPort(n string) *manifest.Pod {
	p := &manifest.Pod{Object: &v1.Pod{}, Origin: manifest.Origin{Path: "a.yaml", Line: 1}}
	port := v1.ContainerPort{Protocol: v1.ProtocolTCP}
	if _, err := fmt.Sscan(n, &port.HostPort); err != nil {
		panic(err)
	}
	port.ContainerPort = port.HostPort
	p.Object.Spec.Containers = []v1.Container{{Name: "app", Ports: []v1.ContainerPort{port}}}
	return p
}
