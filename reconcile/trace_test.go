package reconcile_test

import (
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"podd/reconcile"
)

// TestTrace checks the spans of the start and of the termination of a pod. The start is one trace.
func TestTrace(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		spans := tracetest.NewSpanRecorder()
		m.options = func(o *reconcile.Options) {
			o.Tracer = sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
		}
		m.start()
		m.settle()
		m.setPods(pod(t, "web", web))
		m.settle()
		if got, want := traces(spans), "syncPod(PrepareVolumes EnsureImage RunSandbox StartContainer)"; got != want {
			t.Errorf("spans of the start: got %s, want %s", got, want)
		}
		spans.Reset()
		m.setPods()
		m.settle()
		if got, want := traces(spans), "syncTerminatingPod(StopContainer StopSandbox) syncTerminatedPod(RemoveSandbox RemoveDir)"; got != want {
			t.Errorf("spans of the end: got %s, want %s", got, want)
		}
	})
}

// traces returns the names of the outermost spans that have ended, each with its children in the order
// of their starts.
func traces(spans *tracetest.SpanRecorder) string {
	children := map[trace.SpanID][]string{}
	for _, s := range spans.Started() {
		children[s.Parent().SpanID()] = append(children[s.Parent().SpanID()], s.Name())
	}
	var all []string
	for _, s := range spans.Ended() {
		if !s.Parent().IsValid() {
			all = append(all, s.Name()+"("+strings.Join(children[s.SpanContext().SpanID()], " ")+")")
		}
	}
	return strings.Join(all, " ")
}
