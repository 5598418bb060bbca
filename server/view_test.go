package server

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProblemView_String(t *testing.T) {
	for want, p := range map[string]ProblemView{
		"manifests/clock.yaml:4:21: error: spec.containers[0].image: required": {Path: "manifests/clock.yaml", Line: 4, Column: 21, Severity: SeverityError, FieldPath: "spec.containers[0].image", Message: "required"},
		"db.yaml:3: warning: waits":     {Path: "db.yaml", Line: 3, Severity: SeverityWarning, Message: "waits"},
		"db.yaml: error: unreadable":    {Path: "db.yaml", Column: 7, Severity: SeverityError, Message: "unreadable"},
		"error: no runtime was reached": {Severity: SeverityError, Message: "no runtime was reached"},
		"error: spec: is not supported": {Severity: SeverityError, FieldPath: "spec", Message: "is not supported"},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestKey_JSON(t *testing.T) {
	for text, key := range map[string]Key{`"default/web-n1"`: {"default", "web-n1"}, `""`: {}} {
		got, err := json.Marshal(key)
		if err != nil || string(got) != text {
			t.Errorf("Marshal of %+v: got %s, error %v; want %s", key, got, err, text)
		}
		var back Key
		if err := json.Unmarshal([]byte(text), &back); err != nil || back != key {
			t.Errorf("Unmarshal of %s: got %+v, error %v; want %+v", text, back, err, key)
		}
	}
	var k Key
	if err := json.Unmarshal([]byte(`"web"`), &k); err == nil {
		t.Errorf("Unmarshal of a name without a namespace: got %+v, want an error", k)
	}
}

func TestPodView_HasPendingEdit(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		pod  PodView
		want bool
	}{
		"the current version is ready":         {PodView{IsCurrent: true, Ready: true}, false},
		"an edit waits":                        {PodView{Ready: true}, true},
		"an edit came before it was ready":     {PodView{}, false},
		"containers of an earlier version run": {PodView{IsCurrent: true, OutdatedRunningContainers: 1}, true},
		"it is being removed":                  {PodView{Ready: true, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}}, false},
	} {
		if test.pod.Pod == nil {
			test.pod.Pod = &v1.Pod{}
		}
		if got := test.pod.HasPendingEdit(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
