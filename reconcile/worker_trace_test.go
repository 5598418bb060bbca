package reconcile

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// newTestTracer returns a syncTracer that replaces hunter2, and a recorder of its spans.
func newTestTracer() (*syncTracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return &syncTracer{
		tracer: sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test"), key: types.NamespacedName{Namespace: "default", Name: "web"},
		redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	}, spans
}

func TestSyncTracer(t *testing.T) {
	tracer, spans := newTestTracer()
	prepare := plan.Decision{Phase: plan.PhasePrepare, Rule: "start"}
	ctx, sandbox := tracer.beginAction(t.Context(), prepare, plan.RunSandbox{}, "u1")
	if trace.SpanFromContext(ctx) != sandbox.Span {
		t.Error("span in the context of the action: got another one, want the span of the action")
	}
	_, pull := tracer.beginAction(t.Context(), prepare, plan.EnsureImage{Container: "a", Image: "i:1"}, "u1")
	if ctx, probe := tracer.beginAction(t.Context(), prepare, plan.RunProbe{Container: "a"}, "u1"); probe != nil || trace.SpanFromContext(ctx).SpanContext().IsValid() {
		t.Error("probe: got a span, want none")
	}
	ended := time.Now().Add(time.Second)
	tracer.endAction(sandbox, result.Result{Ended: ended})
	tracer.endSync()
	tracer.endAction(pull, result.Result{Err: errors.New("password hunter2 is wrong"), Ended: ended})
	tracer.endSync()
	if got, want := spanNames(spans), "RunSandbox, EnsureImage, syncPod"; got != want {
		t.Fatalf("ended spans: got %s, want %s", got, want)
	}
	all := spans.Ended()
	for _, s := range all[:2] {
		if s.Parent().SpanID() != all[2].SpanContext().SpanID() || !s.EndTime().Equal(ended) {
			t.Errorf("%s: got parent %v and end %v, want the span of the sync and %v", s.Name(), s.Parent().SpanID(), s.EndTime(), ended)
		}
	}
	if all[2].Parent().IsValid() {
		t.Error("span of the sync: got one with a parent, want one without a parent")
	}
	if got := all[1].Status(); got.Code != codes.Error || got.Description != "password *** is wrong" {
		t.Errorf("status of the failed action: got %+v, want an error with the description \"password *** is wrong\"", got)
	}
	if got := all[2].Status(); got.Code != codes.Error {
		t.Errorf("status of the sync: got %+v, want an error", got)
	}
	for i, want := range map[int][]attribute.KeyValue{
		0: {attribute.String("podd.rule", "start"), attribute.String("podd.action", "run sandbox, attempt 0")},
		2: {attribute.String("k8s.namespace.name", "default"), attribute.String("k8s.pod.name", "web"), attribute.String("k8s.pod", "default/web"), attribute.String("k8s.pod.uid", "u1")},
	} {
		if got := all[i].Attributes(); !slices.Equal(got, want) {
			t.Errorf("attributes of %s: got %v, want %v", all[i].Name(), got, want)
		}
	}
}

// TestSyncTracer_Stop checks that a new sync begins when a pod begins to stop. The previous sync ends
// after its last action and shows the errors of its own actions only.
func TestSyncTracer_Stop(t *testing.T) {
	tracer, spans := newTestTracer()
	run, stop := plan.Decision{Phase: plan.PhaseRun}, plan.Decision{Phase: plan.PhaseStop}
	_, start := tracer.beginAction(t.Context(), run, plan.StartContainer{Container: "a"}, "u1")
	_, pull := tracer.beginAction(t.Context(), run, plan.EnsureImage{Container: "b", Image: "i:1"}, "u1")
	_, kill := tracer.beginAction(t.Context(), stop, plan.StopSandbox{ID: "s"}, "u1")
	if got := spanNames(spans); got != "" {
		t.Errorf("ended spans: got %s, want none", got)
	}
	ended := time.Now().Add(time.Second)
	tracer.endAction(start, result.Result{Err: errors.New("no space left"), Ended: ended.Add(-time.Second)})
	tracer.endAction(pull, result.Result{Canceled: true, Err: errors.New("context canceled"), Ended: ended})
	tracer.endAction(kill, result.Result{Ended: ended.Add(time.Second)})
	tracer.endSync()
	if got, want := spanNames(spans), "StartContainer, EnsureImage, syncPod, StopSandbox, syncTerminatingPod"; got != want {
		t.Fatalf("ended spans: got %s, want %s", got, want)
	}
	all := spans.Ended()
	if got := all[1]; got.Status().Code != codes.Unset || !slices.Contains(got.Attributes(), attribute.Bool("podd.canceled", true)) {
		t.Errorf("canceled action: got status %+v and attributes %v, want no error and podd.canceled true", got.Status(), got.Attributes())
	}
	if got := all[2]; got.Status().Code != codes.Error || !got.EndTime().Equal(ended) {
		t.Errorf("syncPod: got status %+v and end %v, want an error and %v", got.Status(), got.EndTime(), ended)
	}
	if got := all[4].Status(); got.Code != codes.Unset {
		t.Errorf("syncTerminatingPod: got status %+v, want no error", got)
	}
}

// TestSyncTracer_Shutdown checks that all spans end when the worker stops.
func TestSyncTracer_Shutdown(t *testing.T) {
	tracer, spans := newTestTracer()
	_, start := tracer.beginAction(t.Context(), plan.Decision{Phase: plan.PhaseRun}, plan.StartContainer{Container: "a"}, "u1")
	_, stop := tracer.beginAction(t.Context(), plan.Decision{Phase: plan.PhaseStop}, plan.StopSandbox{ID: "s"}, "u1")
	tracer.endAll(map[string]*runningAction{"a": {span: start}, "s": {span: stop}, "probe": {}})
	if n := len(spans.Ended()); n != 4 || len(spans.Started()) != 4 {
		t.Errorf("got %d ended and %d started spans, want 4 of each", n, len(spans.Started()))
	}
}

// TestSyncTracer_Disabled checks that the zero value creates no spans.
func TestSyncTracer_Disabled(t *testing.T) {
	var tracer syncTracer
	ctx, span := tracer.beginAction(t.Context(), plan.Decision{}, plan.RunSandbox{}, "u1")
	if ctx != t.Context() || span != nil {
		t.Error("got a span, want none")
	}
	tracer.endAction(span, result.Result{Err: errors.New("failed")})
	tracer.endSync()
	tracer.endAll(nil)
}

func spanNames(spans *tracetest.SpanRecorder) string {
	var names []string
	for _, s := range spans.Ended() {
		names = append(names, s.Name())
	}
	return strings.Join(names, ", ")
}
