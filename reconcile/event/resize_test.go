package event

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestForResize checks that each change of a resize is reported once.
func TestForResize(t *testing.T) {
	published := func(memory string, conditions ...v1.PodCondition) *v1.Pod {
		p := web().Object.DeepCopy()
		p.Generation = 7
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}
		p.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: conditions}
		return p
	}
	condition := func(kind v1.PodConditionType, reason, message string) v1.PodCondition {
		return v1.PodCondition{Type: kind, Status: v1.ConditionTrue, Reason: reason, Message: message}
	}
	running := condition(v1.PodResizeInProgress, "", "")
	failed := condition(v1.PodResizeInProgress, v1.PodReasonError, "busy")
	deferred := condition(v1.PodResizePending, v1.PodReasonDeferred, "full")
	infeasible := condition(v1.PodResizePending, v1.PodReasonInfeasible, "too large")
	finished := published("2Gi")
	finished.Status.Phase = v1.PodSucceeded
	line := func(kind, reason, text, failure string) string {
		if failure != "" {
			failure = `,"error":"` + failure + `"`
		}
		return kind + " " + reason + " : Pod resize " + text +
			`: {"initContainers":[{"name":"first","resources":{}}],"containers":[{"name":"app","resources":{"limits":{"memory":"2Gi"}}}],"generation":7` + failure + "}"
	}
	for name, c := range map[string]struct {
		change ResizeChange
		want   []string
	}{
		"no resize":                     {ResizeChange{Before: published("2Gi"), After: published("2Gi")}, nil},
		"first report, no resize":       {ResizeChange{After: published("2Gi")}, nil},
		"first report":                  {ResizeChange{After: published("2Gi", running), IsPending: true}, []string{line("Normal", "ResizeStarted", "started", "")}},
		"started":                       {ResizeChange{IsNewSize: true, Before: published("1Gi"), After: published("2Gi", running), IsPending: true}, []string{line("Normal", "ResizeStarted", "started", "")}},
		"in progress":                   {ResizeChange{Before: published("2Gi", running), After: published("2Gi", running), IsPending: true}, nil},
		"another size":                  {ResizeChange{IsNewSize: true, Before: published("1Gi", running), After: published("2Gi", running), IsPending: true}, []string{line("Normal", "ResizeStarted", "started", "")}},
		"error":                         {ResizeChange{Before: published("2Gi", running), After: published("2Gi", failed), IsPending: true}, []string{line("Warning", "ResizeError", "error", "busy")}},
		"same error":                    {ResizeChange{Before: published("2Gi", failed), After: published("2Gi", failed), IsPending: true}, nil},
		"same error, another size":      {ResizeChange{IsNewSize: true, Before: published("1Gi", failed), After: published("2Gi", failed), IsPending: true}, []string{line("Normal", "ResizeStarted", "started", ""), line("Warning", "ResizeError", "error", "busy")}},
		"completed":                     {ResizeChange{Before: published("2Gi", failed), After: published("2Gi")}, []string{line("Normal", "ResizeCompleted", "completed", "")}},
		"back to the actual size":       {ResizeChange{IsNewSize: true, Before: published("1Gi", failed), After: published("2Gi")}, []string{line("Normal", "ResizeStarted", "started", ""), line("Normal", "ResizeCompleted", "completed", "")}},
		"finished":                      {ResizeChange{Before: published("2Gi", running), After: finished}, nil},
		"waits for a newer version":     {ResizeChange{Before: published("2Gi", running), After: published("2Gi"), IsPending: true}, nil},
		"deferred":                      {ResizeChange{IsNewSize: true, Before: published("1Gi"), After: published("2Gi", deferred), IsPending: true}, []string{line("Warning", "ResizeDeferred", "Deferred", "full")}},
		"deferred for another reason":   {ResizeChange{Before: published("2Gi", condition(v1.PodResizePending, v1.PodReasonDeferred, "busy")), After: published("2Gi", deferred), IsPending: true}, nil},
		"another size is deferred":      {ResizeChange{IsNewSize: true, Before: published("1Gi", deferred), After: published("2Gi", deferred), IsPending: true}, []string{line("Warning", "ResizeDeferred", "Deferred", "full")}},
		"no longer feasible":            {ResizeChange{Before: published("2Gi", deferred), After: published("2Gi", infeasible), IsPending: true}, []string{line("Warning", "ResizeInfeasible", "Infeasible", "too large")}},
		"deferred again":                {ResizeChange{Before: published("2Gi", deferred), After: published("2Gi", deferred), IsPending: true}, nil},
		"infeasible":                    {ResizeChange{IsNewSize: true, Before: published("1Gi", running), After: published("2Gi", infeasible), IsPending: true}, []string{line("Warning", "ResizeInfeasible", "Infeasible", "too large")}},
		"admitted after being deferred": {ResizeChange{Before: published("2Gi", deferred), After: published("2Gi", running), IsPending: true}, []string{line("Normal", "ResizeStarted", "started", "")}},
	} {
		c.change.Subject = NewSubject(web(), at)
		if got, want := format(ForResize(c.change)), strings.Join(c.want, "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}
