package containers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/gc"
	"podd/reconcile/gc/gctrace"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// A removals is a Runtime that records the IDs of removed containers, and the spans in the contexts of the
// removals. While err is set, removals fail. Removals of containers in broken fail with the error in broken.
type removals struct {
	mu     sync.Mutex // guards all following fields
	ids    []string
	spans  []trace.SpanContext
	err    error
	broken map[string]error
}

func (r *removals) RemoveContainer(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, id)
	r.spans = append(r.spans, trace.SpanContextFromContext(ctx))
	return cmp.Or(r.broken[id], r.err)
}

// take returns the IDs since the last call.
func (r *removals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.ids
	r.ids = nil
	return ids
}

// container returns a container that was created some minutes before now. Its ID is the name with the
// attempt number.
func container(name string, attempt int, status runtime.ContainerState, minutes int) runtime.Container {
	return runtime.Container{
		ID: name + string(rune('0'+attempt)), Name: name, Attempt: uint32(attempt), State: status,
		CreatedAt: time.Now().Add(-time.Duration(minutes) * time.Minute),
	}
}

// pod returns the report of a pod with one sandbox. finished is set if the pod has completed and is
// cleaned up.
func pod(uid string, finished bool, containers ...runtime.Container) *state.Report {
	r := &state.Report{
		Version:  &manifest.Pod{UID: types.UID(uid)},
		Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s-" + uid, UID: types.UID(uid)}, Containers: containers}},
	}
	if finished {
		r.Finished, r.IsEndRecorded, r.Decision.Phase = &plan.PodEnd{}, true, plan.PhaseCleanedUp
	}
	return r
}

// TestCollector checks that the oldest dead containers are removed every minute. Running
// containers, containers of other programs and the newest exited container of a pod that has not
// finished are never removed.
func TestCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := pod("foreign", true, container("f", 0, runtime.Exited, 99))
		foreign.Observed[0].Foreign = true
		reports := []*state.Report{
			pod("runs", false, container("a", 0, runtime.Exited, 9), container("a", 1, runtime.Exited, 8), container("a", 2, runtime.Running, 7)),
			pod("unknown", false, container("b", 0, runtime.ExitCodeUnknown, 90)),
			pod("completed", true, container("c", 0, runtime.Exited, 5)),
			foreign,
		}
		removed := &removals{err: runtime.ErrUnavailable}
		var log bytes.Buffer
		var events []event.Event
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- New(Options{
				Policy: gc.ContainerPolicy{}, Reports: func() []*state.Report { return reports }, Runtime: removed,
				Record: func(all []event.Event) { events = append(events, all...) },
				Log:    slog.New(slog.NewTextHandler(&log, nil)),
			}).Run(ctx)
		}()
		time.Sleep(2*interval + time.Second)
		synctest.Wait()
		if want := []string{"a0", "a0"}; !slices.Equal(removed.ids, want) {
			t.Errorf("runtime unavailable: got removals %v, want one attempt in each of two rounds: %v", removed.ids, want)
		}
		if got := strings.Count(log.String(), "removing dead containers failed"); got != 1 {
			t.Errorf("got %d messages about the failure, want 1:\n%s", got, log.String())
		}
		if len(events) != 2 || events[0].Reason != "ContainerGCFailed" {
			t.Errorf("got events %+v, want ContainerGCFailed in each round", events)
		}
		removed.mu.Lock()
		removed.ids, removed.err = nil, nil
		removed.mu.Unlock()
		time.Sleep(interval)
		synctest.Wait()
		if want := []string{"a0", "c0"}; !slices.Equal(removed.ids, want) {
			t.Errorf("got removals %v, want %v", removed.ids, want)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got error %v, want none", err)
		}
	})
}

// TestDeadContainers checks which containers count as dead and which of them podd needs.
func TestDeadContainers(t *testing.T) {
	interrupted := container("d", 4, runtime.Exited, 1)
	interrupted.Message = "context canceled"
	containers := []runtime.Container{
		container("a", 0, runtime.Created, 9), container("a", 1, runtime.Exited, 8), container("a", 2, runtime.Created, 7),
		container("b", 0, runtime.Created, 6), container("b", 1, runtime.Running, 5), container("c", 0, runtime.Unknown, 4),
		container("c", 1, runtime.ExitCodeUnknown, 3), container("d", 3, runtime.Created, 2), interrupted,
	}
	for name, want := range map[string]string{
		"active pod":   "a0 a1! a2! b0 d3! d4!",
		"finished pod": "a0 a1 a2 b0 d3 d4",
	} {
		var got []string
		for _, c := range deadContainers([]*state.Report{pod("u", name == "finished pod", containers...)}) {
			word := c.ID
			if c.IsNeeded {
				word += "!"
			}
			got = append(got, word)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got dead containers %q (with ! if podd needs it), want %q", name, got, want)
		}
	}
}

// TestCollector_Broken checks that a container that cannot be removed does not prevent the removal of
// other containers. As in the kubelet, the error is logged and causes no event.
func TestCollector_Broken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := []*state.Report{pod("completed", true, container("a", 0, runtime.Exited, 9), container("b", 0, runtime.Exited, 8), container("c", 0, runtime.Exited, 7))}
		removed := &removals{broken: map[string]error{"a0": errors.New("device or resource busy")}}
		var log bytes.Buffer
		var events []event.Event
		c := New(Options{
			Reports: func() []*state.Report {
				removed.mu.Lock()
				defer removed.mu.Unlock()
				return reports
			}, Runtime: removed,
			Record: func(all []event.Event) { events = append(events, all...) },
			Log:    slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(interval + time.Second)
		synctest.Wait()
		if got, want := removed.take(), []string{"a0", "b0", "c0"}; !slices.Equal(got, want) {
			t.Errorf("first round: got removals %v, want %v", got, want)
		}
		if want := "removing dead container a of the pod with UID completed: device or resource busy"; !strings.Contains(log.String(), want) {
			t.Errorf("got log %q, want %q in it", log.String(), want)
		}
		if len(events) > 0 {
			t.Errorf("got events %+v, want none", events)
		}
		removed.mu.Lock()
		removed.broken["a0"] = context.DeadlineExceeded
		reports = []*state.Report{pod("completed", true, container("a", 0, runtime.Exited, 9), container("d", 0, runtime.Exited, 8))}
		removed.mu.Unlock()
		time.Sleep(interval)
		synctest.Wait()
		if got, want := removed.take(), []string{"d0", "a0"}; !slices.Equal(got, want) {
			t.Errorf("second round: got removals %v, want %v, because the removal of a0 has failed before", got, want)
		}
		if len(events) != 1 {
			t.Errorf("call of the runtime timed out: got events %+v, want one", events)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got error %v, want none", err)
		}
	})
}

// TestRemover checks that at most maxFailures removals fail in a round, and that the next rounds try other
// containers first, so that each container is tried.
func TestRemover(t *testing.T) {
	failure := errors.New("device or resource busy")
	removed := &removals{broken: map[string]error{}}
	var all []gc.DeadContainer
	for i := range 2*maxFailures + 5 {
		id := fmt.Sprintf("c%02d", i)
		all = append(all, gc.DeadContainer{ID: id})
		if i < 2*maxFailures {
			removed.broken[id] = failure
		}
	}
	var r remover
	var ids []string
	for i, want := range []int{maxFailures, 5 + maxFailures, 5 + maxFailures} {
		if i == 1 { // later rounds must not depend on the order of the containers
			slices.Reverse(all)
		}
		err := r.removeAll(t.Context(), removed, all)
		got := removed.take()
		if !errors.Is(err, failure) || strings.Count(err.Error(), failure.Error()) != maxFailures || len(got) != want {
			t.Errorf("round %d: got %d removals and error %v, want %d removals and %d errors", i, len(got), err, want, maxFailures)
		}
		ids = append(ids, got...)
	}
	if got, want := sets.New(ids...).Len(), len(all); got != want {
		t.Errorf("removals in three rounds: got %d different containers of %d, want all", got, want)
	}
	if r.removeAll(t.Context(), removed, nil) != nil || len(r.failures) != 0 {
		t.Errorf("after a round without containers: got recorded failures %v, want none", r.failures)
	}
}

// TestRemover_NoResponse checks that no further container is removed if the runtime does not respond.
func TestRemover_NoResponse(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx context.Context
		err error
	}{
		"unavailable":  {t.Context(), runtime.ErrUnavailable},
		"timed out":    {t.Context(), context.DeadlineExceeded},
		"context done": {canceled, context.Canceled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			removed := &removals{err: test.err}
			var r remover
			err := r.removeAll(test.ctx, removed, []gc.DeadContainer{{ID: "a"}, {ID: "b"}})
			if got, want := removed.take(), []string{"a"}; !errors.Is(err, test.err) || !slices.Equal(got, want) {
				t.Errorf("got removals %v and error %v, want %v and %v", got, err, want, test.err)
			}
		})
	}
}

// TestTraces checks that each round of a Collector and each call of Finished.Reclaim has a span, in which
// the containers are removed.
func TestTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
		removed := &removals{}
		reports := func() []*state.Report {
			return []*state.Report{pod("completed", true, container("c", 0, runtime.Exited, 5))}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- New(Options{Reports: reports, Runtime: removed, Tracer: tracer, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
		}()
		time.Sleep(interval + time.Second)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := (&Finished{Reports: reports, Runtime: removed, Tracer: tracer}).Reclaim(t.Context()); err != nil {
			t.Error(err)
		}
		ended := spans.Ended()
		if len(ended) != 2 || len(removed.spans) != 2 {
			t.Fatalf("got %d spans and %d removals, want 2 spans and 2 removals", len(ended), len(removed.spans))
		}
		for i, s := range ended {
			if s.Name() != gctrace.Containers || !s.SpanContext().Equal(removed.spans[i]) {
				t.Errorf("got span %s, want span %s in the context of the removal", s.Name(), gctrace.Containers)
			}
		}
	})
}

// TestCollector_NoMaximum checks that Run returns if there is no maximum.
func TestCollector_NoMaximum(t *testing.T) {
	if err := New(Options{Policy: gc.ContainerPolicy{Max: -1}}).Run(t.Context()); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}

// TestFinished checks that only containers of finished pods are removed, and only if podd no longer
// needs them to determine the end of the pod. The logs of all finished pods are removed.
func TestFinished(t *testing.T) {
	reports := map[string]*state.Report{}
	for _, name := range []string{"runs", "completed", "unrecorded", "stopping", "evicted", "evicted-once", "cluster", "foreign", "foreign-runs"} {
		status := runtime.Exited
		if name == "runs" || name == "foreign-runs" {
			status = runtime.Running
		}
		reports[name] = pod(name, false, runtime.Container{ID: "c-" + name, Name: "app", State: status})
	}
	finish := func(name string, end plan.PodEnd, p plan.Phase) {
		reports[name].Finished, reports[name].Decision.Phase = &end, p
	}
	finish("completed", plan.PodEnd{}, plan.PhaseCleanedUp)
	reports["completed"].IsEndRecorded = true
	finish("unrecorded", plan.PodEnd{}, plan.PhaseCleanedUp)
	finish("stopping", plan.PodEnd{}, plan.PhaseWindDown)
	reports["stopping"].IsEndRecorded = true
	finish("evicted", plan.PodEnd{Reason: plan.ReasonEvicted, Resumes: true}, plan.PhaseCleanedUp)
	finish("evicted-once", plan.PodEnd{Reason: plan.ReasonEvicted}, plan.PhaseCleanedUp)
	finish("cluster", plan.PodEnd{Reason: plan.ReasonEvicted}, plan.PhaseCleanedUp)
	reports["cluster"].Version.Traits.HasStateAtSource = true
	finish("foreign", plan.PodEnd{}, plan.PhaseCleanedUp)
	finish("foreign-runs", plan.PodEnd{}, plan.PhaseCleanedUp)
	reports["foreign"].Observed[0].Foreign, reports["foreign-runs"].Observed[0].Foreign = true, true
	removed := &removals{}
	f := &Finished{Reports: func() []*state.Report { return slices.Collect(maps.Values(reports)) }, Runtime: removed}
	if err := f.Reclaim(t.Context()); err != nil {
		t.Error(err)
	}
	slices.Sort(removed.ids)
	if want := []string{"c-cluster", "c-completed", "c-evicted"}; !slices.Equal(removed.ids, want) {
		t.Errorf("removed containers: got %v, want %v", removed.ids, want)
	}
	wantLogs := []types.UID{"cluster", "completed", "evicted", "evicted-once", "foreign", "unrecorded"}
	failure := errors.New("mounted")
	var pods []types.UID
	l := FinishedLogs{f.Reports, func(_ context.Context, uids sets.Set[types.UID]) error { pods = sets.List(uids); return failure }}
	if err := l.Reclaim(t.Context()); !errors.Is(err, failure) || !slices.Equal(pods, wantLogs) {
		t.Errorf("removal of logs that fails: got pods %v and error %v, want %v and %v", pods, err, wantLogs, failure)
	}
	removed.ids, removed.broken = nil, map[string]error{"c-completed": failure}
	if err := f.Reclaim(t.Context()); !errors.Is(err, failure) || len(removed.ids) != 3 {
		t.Errorf("container that cannot be removed: got error %v and removals %v, want %v and 3 removals", err, removed.ids, failure)
	}
	removed.ids, removed.err = nil, runtime.ErrUnavailable
	if err := f.Reclaim(t.Context()); !errors.Is(err, runtime.ErrUnavailable) || len(removed.ids) != 1 {
		t.Errorf("runtime unavailable: got error %v after %d calls; want one call", err, len(removed.ids))
	}
}
