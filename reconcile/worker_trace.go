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
// one trace. A new sync begins when the pod begins to stop. The previous sync ends when its last
// action ends. Probes and reads of termination messages have no spans, because they are frequent.
//
// Only the goroutine of the worker may use a syncTracer, because redact reads the state of the
// worker. The zero value creates no spans.
type syncTracer struct {
	tracer trace.Tracer // nil if tracing is disabled
	key    types.NamespacedName
	redact func(string) string // removes private values from a text
	sync   *syncSpan           // the newest sync; nil if it has ended
}

// A syncSpan is the span of a sync that has not ended.
type syncSpan struct {
	trace.Span
	name    string
	running int       // number of the sync's actions in progress
	ended   time.Time // end of the last action; zero if no action has ended
}

// An actionSpan is the span of an action in progress.
type actionSpan struct {
	trace.Span
	sync *syncSpan // the sync that started the action
}

// beginAction begins the span of an action that decision d contains, and of a sync if none is in
// progress. The returned context contains the span of the action, which is nil if the action is not
// traced. uid is the UID of the pod, or "".
func (t *syncTracer) beginAction(ctx context.Context, d plan.Decision, a plan.Action, uid types.UID) (context.Context, *actionSpan) {
	if t.tracer == nil || !isTraced(a) {
		return ctx, nil
	}
	if name := syncName(d.Phase); t.sync == nil || t.sync.name != name {
		t.endSync()
		t.sync = t.beginSync(ctx, name, uid)
	}
	t.sync.running++
	ctx, span := t.tracer.Start(trace.ContextWithSpan(ctx, t.sync.Span), strings.TrimPrefix(fmt.Sprintf("%T", a), "plan."))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("podd.rule", string(d.Rule)), attribute.String("podd.action", t.redact(a.String())))
	}
	return ctx, &actionSpan{Span: span, sync: t.sync}
}

// beginSync begins the span of a sync.
func (t *syncTracer) beginSync(ctx context.Context, name string, uid types.UID) *syncSpan {
	_, span := t.tracer.Start(ctx, name)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("k8s.namespace.name", t.key.Namespace), attribute.String("k8s.pod.name", t.key.Name),
			attribute.String("k8s.pod", t.key.String()), attribute.String("k8s.pod.uid", string(uid)))
	}
	return &syncSpan{Span: span, name: name}
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

// endAction ends the span of the action with result r, and the span of its sync if a newer sync has
// begun and no other action of the sync is in progress. span may be nil.
func (t *syncTracer) endAction(span *actionSpan, r result.Result) {
	if span == nil {
		return
	}
	sync := span.sync
	switch {
	case r.Canceled:
		span.SetAttributes(attribute.Bool("podd.canceled", true))
	case r.Err != nil && span.IsRecording():
		span.SetStatus(codes.Error, t.redact(r.Err.Error()))
		sync.SetStatus(codes.Error, "an action failed")
	}
	span.End(trace.WithTimestamp(r.Ended))
	sync.running--
	sync.ended = r.Ended
	if sync != t.sync {
		sync.endIfIdle()
	}
}

// endSync ends the span of the newest sync unless one of its actions is in progress.
func (t *syncTracer) endSync() {
	if t.sync != nil && t.sync.endIfIdle() {
		t.sync = nil
	}
}

// endIfIdle ends the span unless an action of the sync is in progress. It reports whether the span
// has ended.
func (s *syncSpan) endIfIdle() bool {
	if s.running > 0 {
		return false
	}
	s.End(trace.WithTimestamp(s.ended))
	return true
}

// endAll ends the spans of the actions and of their syncs, because the worker stops.
func (t *syncTracer) endAll(actions map[string]runningAction) {
	for _, running := range actions {
		t.endAction(running.span, result.Result{Canceled: true})
	}
	t.endSync()
}
