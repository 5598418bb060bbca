package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/journal"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/reconcile/state"
)

// A workerMessage is a message from the router to a worker. A newer message replaces an unread
// message, so each message contains the whole order.
type workerMessage struct {
	seq               uint64
	order             state.Order
	requests          state.Requests
	ephemeralRequests []ephemeralRequest
}

// mergeUnread returns m, with the requests and ephemeralRequests of the older message unread added
// to it. The worker has not read that message.
func (m workerMessage) mergeUnread(unread workerMessage) workerMessage {
	m.requests = m.requests.MergeUnread(unread.requests)
	m.ephemeralRequests = append(slices.Clone(unread.ephemeralRequests), m.ephemeralRequests...)
	return m
}

// A worker manages the pod of one name: it receives messages and results, applies them to its
// state, plans, and starts the actions of the decision. All fields below needsConfirmation belong
// to the goroutine in run.
type worker struct {
	key                types.NamespacedName
	effects            *effect.Runner
	journals           journal.Store
	requestObservation func(key types.NamespacedName, urgent bool)
	send               func(workerUpdate)
	log                *slog.Logger

	// The channels contain pointers, because values would enlarge the frame of run. With a larger
	// frame, the stack of an idle worker takes 8 KB instead of 4 KB.
	messages   chan *workerMessage // capacity 1, see post
	results    chan *actionResult
	pullStarts chan *pullStart // messages from effects in progress
	// needsConfirmation reports whether an observation must still confirm the result of the newest
	// effect. If it is true, the router posts the next observation even if the pod did not change.
	needsConfirmation atomic.Bool

	state       *state.State
	seq         uint64             // sequence number of the newest message
	clock       state.ClockReading // reading at the first decision, or at the detection of the last suspension of the host
	actions     map[string]*runningAction
	abandoned   []abandonedStart
	slowWrite   *slowWrite // the write that takes longer than diskTimeout; nil if there is none
	lastLog     logState
	events      []event.Event // events that were not reported yet
	trace       syncTracer
	effectsDone sync.WaitGroup
}

// A runningAction is an action in progress.
type runningAction struct {
	action plan.Action
	since  time.Time
	cancel context.CancelFunc
	permit effect.Permit // only for plan.StartContainer
	uid    types.UID     // UID of the version that the action is for; "" if there is none
	// pullImage is the name of the image that the action pulls, and pullStart is the start of its
	// pull. Both are zero if there is no pull.
	pullImage string
	pullStart time.Time
	span      *actionSpan // see syncTracer; nil if the action is not traced
}

// An actionResult is the result of an effect with its permit; see effect.Input.
type actionResult struct {
	result.Result
	permit effect.Permit
}

// post sends a message without blocking. Only the router calls it.
func (w *worker) post(m workerMessage) {
	select {
	case unread := <-w.messages:
		m = m.mergeUnread(*unread)
	default:
	}
	w.messages <- &m
}

// run applies messages and results until ctx is done and every effect has ended.
func (w *worker) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		mustReport := false
		select {
		case <-ctx.Done():
			w.awaitActions()
			return
		case m := <-w.messages:
			w.receive(m)
			mustReport = true
		case f := <-w.results:
			mustReport = w.handleResult(f)
		case f := <-w.pullStarts:
			w.applyPullStart(f)
			mustReport = true
		case err := <-w.slowWrite.resultChannel():
			w.endWrite(err)
			mustReport = true
		case <-timer.C:
		}
		if wakeAt := w.decide(ctx, mustReport); wakeAt.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(time.Until(wakeAt), 0))
		}
	}
}

// awaitActions cancels the actions in progress and waits until all effects have returned. It then
// waits up to diskTimeout for a slow write.
func (w *worker) awaitActions() {
	defer w.finishWrites()
	for _, action := range w.actions {
		action.cancel()
	}
	done := make(chan struct{})
	go func() { w.effectsDone.Wait(); close(done) }()
	for {
		select {
		case <-w.results:
		case <-done:
			w.trace.endAll(w.actions)
			return
		}
	}
}

// receive applies a message.
func (w *worker) receive(m *workerMessage) {
	w.seq = m.seq
	// Read the disk only if the state needs the result, because a disk may not respond.
	p := m.order.Desired
	hasDir := p != nil && w.state.LacksDir(p.UID) && w.journals.Has(p.UID)
	w.applyTransition(w.state.ApplyOrder(m.order, m.requests, hasDir, time.Now()))
	for _, a := range m.ephemeralRequests {
		a.reply <- w.addEphemeral(a)
	}
}

// handleResult applies the result of an action. mustReport reports whether the next decision must
// be reported even if it is unchanged.
func (w *worker) handleResult(f *actionResult) (mustReport bool) {
	if w.forgetAbandoned(f) {
		return true
	}
	action := w.actions[f.Action.Subject()]
	action.cancel()
	w.trace.endAction(action.span, f.Result)
	delete(w.actions, f.Action.Subject())
	w.state = w.state.WithInFlight(w.inFlight())
	if plan.IsHook(f.Action) && !containsOperation(w.state.ReportedDecision.Actions, f.Action) {
		return false // ignore the result, because the hook was canceled
	}
	if plan.IsObservable(f.Action) {
		w.needsConfirmation.Store(true)
	}
	isForDesired := f.IsFor(w.state.PlanInput.Desired)
	newState, outputs := w.state.ApplyResult(f.Result, time.Now())
	w.applyTransition(newState, outputs)
	w.logResult(f.Result, isForDesired, f.Ended.Sub(action.since))
	return outputs.NeedsReport
}

// applyTransition replaces the state with newState and carries out the outputs of the transition.
func (w *worker) applyTransition(newState *state.State, outputs state.Outputs) {
	w.state = newState
	for _, j := range outputs.Writes {
		w.writeAndApply(j)
	}
	if outputs.AcceptedObservation {
		w.needsConfirmation.Store(false)
	}
	if outputs.RequestedObservation != state.ObserveNotRequested {
		// The router must post the observation even if the pod did not change.
		w.needsConfirmation.Store(true)
		w.requestObservation(w.key, outputs.RequestedObservation == state.ObserveAtOnce)
	}
	w.events = append(w.events, outputs.Events...)
	for _, n := range outputs.LogRecords {
		level := slog.LevelInfo
		if n.IsWarning {
			level = slog.LevelWarn
		}
		w.log.Log(context.Background(), level, n.Message, n.Args...)
	}
}
