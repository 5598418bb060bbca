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
// and no sync is in progress. The spans of the actions are its children, so that the start of a pod
// is one trace.
//
// The sync ends when its last action has ended and an observation has confirmed the result of that
// action. If the pod begins to stop, a new sync begins, and the previous sync ends when its last
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
	actions int       // number of the sync's actions in progress
	lastEnd time.Time // end of the last action; zero if no action has ended
}

// An actionSpan is the span of an action in progress.
type actionSpan struct {
	trace.Span
	sync *syncSpan // the sync that started the action
}

// beginAction begins the span of action a of decision d. If no sync is in progress, it also begins
// the span of a sync. The returned context contains the span of the action. The span is nil if the
// action is not traced. uid is the UID of the pod, or "".
func (t *syncTracer) beginAction(ctx context.Context, d plan.Decision, a plan.Action, uid types.UID) (context.Context, *actionSpan) {
	if t.tracer == nil || !isTraced(a) {
		return ctx, nil
	}
	if name := syncName(d.Phase); t.sync == nil || t.sync.name != name {
		t.endSync()
		t.sync = t.beginSync(ctx, name, uid)
	}
	t.sync.actions++
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

// syncName returns the name of the span of a sync that begins in phase p. The names are those of
// the kubelet.
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

// endAction ends the span of the action with result r. If a newer sync has begun and no other
// action of the action's own sync is in progress, endAction also ends the span of that sync. span
// may be nil.
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
	sync.actions--
	sync.lastEnd = r.Ended
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

// endIfIdle ends the span unless an action of the sync is in progress. It reports whether it has
// ended the span.
func (s *syncSpan) endIfIdle() bool {
	if s.actions > 0 {
		return false
	}
	s.End(trace.WithTimestamp(s.lastEnd))
	return true
}

// endAll ends the spans of the actions and of their syncs, because the worker stops.
func (t *syncTracer) endAll(actions map[string]*runningAction) {
	for _, action := range actions {
		t.endAction(action.span, result.Result{Canceled: true})
	}
	t.endSync()
}
