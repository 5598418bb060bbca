package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// A syncTracer creates the spans of a worker. The span of a sync begins when an action is started
// while no sync is in progress. The sync ends with its last action, when an observation has confirmed
// the result of that action. The spans of the actions are its children, so that the start of a pod is
// one trace. A new sync begins when the pod begins to stop. Probes and reads of termination messages
// have no spans, because they are frequent.
//
// Only the goroutine of the worker may use a syncTracer, because redact reads the state of the
// worker. The zero value creates no spans.
type syncTracer struct {
	tracer trace.Tracer // nil if tracing is disabled
	key    types.NamespacedName
	redact func(string) string // removes private values from a text
	sync   trace.Span          // span of the sync in progress; nil if there is none
	name   string              // name of sync
	ended  time.Time           // end of the last action of sync; zero if no action has ended
}

// beginAction begins the span of an action that decision d contains, and of a sync if none is in
// progress. The returned context contains the span of the action, which is nil if the action is not
// traced. uid is the UID of the pod, or "".
func (t *syncTracer) beginAction(ctx context.Context, d plan.Decision, a plan.Action, uid types.UID) (context.Context, trace.Span) {
	if t.tracer == nil || !isTraced(a) {
		return ctx, nil
	}
	if name := syncName(d.Phase); t.sync == nil || t.name != name {
		t.endSync(nil)
		t.name, t.ended = name, time.Time{}
		_, t.sync = t.tracer.Start(ctx, name)
		if t.sync.IsRecording() {
			t.sync.SetAttributes(
				attribute.String("k8s.namespace.name", t.key.Namespace), attribute.String("k8s.pod.name", t.key.Name),
				attribute.String("k8s.pod", t.key.String()), attribute.String("k8s.pod.uid", string(uid)))
		}
	}
	ctx, span := t.tracer.Start(trace.ContextWithSpan(ctx, t.sync), strings.TrimPrefix(fmt.Sprintf("%T", a), "plan."))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("podd.rule", string(d.Rule)), attribute.String("podd.action", t.redact(a.String())))
	}
	return ctx, span
}

// syncName returns the name of the span of a sync that begins in a phase. The kubelet uses the same
// names.
func syncName(p plan.Phase) string {
	switch p {
	case plan.PhaseStop:
		return "syncTerminatingPod"
	case plan.PhaseWindDown, plan.PhaseCleanedUp:
		return "syncTerminatedPod"
	}
	return "syncPod"
}

// isTraced reports whether action a has a span.
func isTraced(a plan.Action) bool {
	switch a.(type) {
	case plan.RunProbe, plan.ReadMessage:
		return false
	}
	return true
}

// endAction ends the span of the action with result r. span may be nil.
func (t *syncTracer) endAction(span trace.Span, r result.Result) {
	if span == nil {
		return
	}
	switch {
	case r.Canceled:
		span.SetAttributes(attribute.Bool("podd.canceled", true))
	case r.Err != nil && span.IsRecording():
		span.SetStatus(codes.Error, t.redact(r.Err.Error()))
		if t.sync != nil {
			t.sync.SetStatus(codes.Error, "an action failed")
		}
	}
	span.End(trace.WithTimestamp(r.Ended))
	t.ended = r.Ended
}

// endSync ends the span of the sync unless actions contains an action with a span.
func (t *syncTracer) endSync(actions map[string]runningAction) {
	if t.sync == nil {
		return
	}
	for _, running := range actions {
		if running.span != nil {
			return
		}
	}
	t.sync.End(trace.WithTimestamp(t.ended))
	t.sync = nil
}

// endAll ends the spans of the actions and of the sync, because the worker stops.
func (t *syncTracer) endAll(actions map[string]runningAction) {
	for _, running := range actions {
		t.endAction(running.span, result.Result{Canceled: true})
	}
	t.endSync(nil)
}
