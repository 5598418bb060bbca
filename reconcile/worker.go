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

// mergeUnread returns m combined with the requests and ephemeralRequests of an earlier message that
// was not read.
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

	messages   chan *workerMessage // capacity 1, see post
	results    chan actionResult
	pullStarts chan pullStart // messages from effects in progress
	// needsConfirmation reports whether no observation has confirmed the result of the newest
	// effect yet. If it is true, the router posts the next observation even if the pod did not
	// change.
	needsConfirmation atomic.Bool

	state       *state.State
	seq         uint64             // sequence number of the newest message
	clock       state.ClockReading // clock reading at the first decision, or when the last suspension of the host was detected
	actions     map[string]runningAction
	abandoned   []abandonedStart
	slowWrite   *slowWrite // the write that takes longer than diskTimeout; nil if there is none
	logged      logState
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
	// pullImage is the name of the image that the action pulls, and pullStart is when its pull began;
	// zero if there is no pull.
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
	wake := time.NewTimer(0)
	defer wake.Stop()
	<-wake.C
	for {
		news := false
		select {
		case <-ctx.Done():
			w.awaitActions()
			return
		case m := <-w.messages:
			w.receive(m)
			news = true
		case f := <-w.results:
			news = w.handleResult(f)
		case f := <-w.pullStarts:
			w.applyPullStart(f)
			news = true
		case err := <-w.slowWrite.resultChannel():
			w.endWrite(err)
			news = true
		case <-wake.C:
		}
		if at := w.decide(ctx, news); at.IsZero() {
			wake.Stop()
		} else {
			wake.Reset(max(time.Until(at), 0))
		}
	}
}

// awaitActions cancels the actions in progress and waits until all effects have returned. Then it
// waits up to diskTimeout for a slow write.
func (w *worker) awaitActions() {
	defer w.finishWrites()
	for _, running := range w.actions {
		running.cancel()
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

// handleResult applies the result of an action. news reports whether the next decision must be
// reported even if it is unchanged.
func (w *worker) handleResult(f actionResult) (news bool) {
	if w.forgetAbandoned(f) {
		return true
	}
	running := w.actions[f.Action.Subject()]
	running.cancel()
	w.trace.endAction(running.span, f.Result)
	delete(w.actions, f.Action.Subject())
	w.state = w.state.WithInFlight(w.inFlight())
	if plan.IsHook(f.Action) && !containsOperation(w.state.ReportedDecision.Actions, f.Action) {
		return false // ignore the result, because the hook was canceled
	}
	if plan.IsObservable(f.Action) {
		w.needsConfirmation.Store(true)
	}
	isFor := f.IsFor(w.state.PlanInput.Desired)
	next, out := w.state.ApplyResult(f.Result, time.Now())
	w.applyTransition(next, out)
	w.logResult(f.Result, isFor, f.Ended.Sub(running.since))
	return out.NeedsReport
}

// applyTransition replaces the state and carries out the outputs of the change.
func (w *worker) applyTransition(next *state.State, out state.Outputs) {
	w.state = next
	for _, j := range out.Writes {
		w.writeAndApply(j)
	}
	if out.AcceptedObservation {
		w.needsConfirmation.Store(false)
	}
	if out.RequestedObservation != state.ObserveNotRequested {
		// The router must post the observation even if the pod did not change.
		w.needsConfirmation.Store(true)
		w.requestObservation(w.key, out.RequestedObservation == state.ObserveAtOnce)
	}
	w.events = append(w.events, out.Events...)
	for _, n := range out.LogRecords {
		level := slog.LevelInfo
		if n.IsWarning {
			level = slog.LevelWarn
		}
		w.log.Log(context.Background(), level, n.Message, n.Args...)
	}
}
