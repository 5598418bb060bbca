package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/redact"
)

// A reply is the result of a step, which was decided from facts.
type reply struct {
	key   types.NamespacedName
	step  step
	facts facts
	pod   *v1.Pod
	err   error
	late  bool // there was no response within writeTime
}

// writeTime limits a request. A webhook may delay the API server for 30 s. The
// leaseRenewer closes connections without a response earlier.
const writeTime = 40 * time.Second

// request sends the request of a step. If the object to delete does not exist or has
// another UID, that is no error.
func (c *client) request(ctx context.Context, key types.NamespacedName, s step, f facts) reply {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	a := reply{key: key, step: s, facts: f, pod: &v1.Pod{}}
	switch s.verb {
	case create:
		a.err = c.doUntil(ctx, c.core.Post().Namespace(key.Namespace).Resource("pods").Body(s.pod), a.pod)
	case patches:
		a.err = c.doUntil(ctx, c.core.Patch(types.StrategicMergePatchType).Namespace(key.Namespace).Resource("pods").Name(key.Name).SubResource("status").Body(s.body), a.pod)
		if apierrors.IsNotFound(a.err) {
			a.pod, a.err = nil, nil
		}
	case remove:
		o := &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &s.pod.UID}}
		a.err = c.doUntil(ctx, c.core.Delete().Namespace(key.Namespace).Resource("pods").Name(key.Name).Body(o), a.pod)
		if apierrors.IsNotFound(a.err) || apierrors.IsConflict(a.err) {
			a.err = nil
		}
		if len(a.pod.Finalizers) == 0 { // otherwise finalizers keep it
			a.pod = nil
		}
	}
	a.late = a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	return a
}

// handleReply applies a reply.
func (w *writer) handleReply(a reply, now time.Time) {
	w.requests--
	if a.step.verb == create {
		w.creates--
	}
	r := w.records[a.key]
	r.inFlight, r.facts = nothing, facts{}
	if a.err != nil {
		w.failed(r, a, now)
		return
	}
	w.hold, w.backoff, r.attempt = time.Time{}, backoff{}, attempted{}
	made := a.step.verb == create || r.answer != nil && r.answer.made && r.answer.uid == a.step.pod.UID
	r.answer = &outcome{uid: a.step.pod.UID, pod: a.pod, made: made, until: now.Add(outcomeTime)}
	if a.pod == nil {
		return
	}
	r.answer.uid = a.pod.UID
	slim(a.pod)
	if a.step.verb == patches {
		// An API server that does not know a field drops it every time.
		f := a.facts
		f.seen = a.pod
		if again, _, err := decide(&f); err == nil && again.verb == patches && bytes.Equal(again.body, a.step.body) {
			r.futile = string(a.step.body)
		}
	}
}

// The waits between attempts for one pod start with firstWait and double.
const (
	maxServerErrorWait = maxUncachedWait  // the API server has an error
	maxRejectedWait    = 30 * time.Second // rejected until something changes
)

// failed handles a failed request. Without a response all requests pause, unless the API
// server was only slow for this pod.
func (w *writer) failed(r *record, a reply, now time.Time) {
	if !isAPIError(a.err) && !a.late {
		w.hold = now.Add(min(w.backoff.next(), maxUncachedWait))
		return
	}
	t := &r.attempt
	if t.why == "" {
		t.since = now
		if a.late {
			t.since = now.Add(-writeTime)
		}
	}
	most := maxRejectedWait
	if code := statusOfError(a.err).Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || a.late {
		most = maxServerErrorWait
	}
	t.wait = min(max(2*t.wait, firstWait), most)
	t.of, t.why, t.next = a.step.pod.UID, rejectionText(a), now.Add(t.wait)
}

// statusOfError returns the status in a response of the API server.
func statusOfError(err error) metav1.Status {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return refused.Status()
	}
	return metav1.Status{}
}

// A Rejection is the reason for which the API server does not accept a pod.
type Rejection struct {
	Pod  types.NamespacedName
	Path string // as in server.PodView
	Line int
	Why  string
}

// rejectionDelay is how long attempts must fail before users are told, because namespaces
// may be created after the node starts.
const rejectionDelay = 2 * time.Second

// reportRejections reports rejections if they have changed.
func (w *writer) reportRejections(ctx context.Context) {
	var all []Rejection
	for key, r := range w.records {
		why := r.problem
		if t := r.attempt; t.why != "" && t.next.Sub(t.since) > rejectionDelay {
			why = t.why
		}
		if why == "" || r.mine == nil {
			continue
		}
		all = append(all, Rejection{key, r.mine.Path, r.mine.Line, why})
	}
	slices.SortFunc(all, func(a, b Rejection) int { return cmp.Compare(a.Pod.String(), b.Pod.String()) })
	if slices.Equal(all, w.rejections) {
		return
	}
	for _, one := range all {
		if !slices.Contains(w.rejections, one) {
			w.o.Log.Warn("cluster", "pod", one.Pod, "why", one.Why)
		}
	}
	w.rejections = all
	w.o.OnRejected(ctx, all)
}

// rejectionText returns the message for users. The page shows it to everybody, so it has no
// private values of the pod that was sent: a webhook may quote any field, and a message in
// the status can be the end of a log.
func rejectionText(a reply) string {
	if apierrors.IsAlreadyExists(a.err) {
		return nameTaken
	}
	pods := []*v1.Pod{a.step.pod, a.facts.seen, a.facts.last}
	if a.facts.mine != nil {
		pods = append(pods, a.facts.mine.Pod)
	}
	says := sanitize(redact.StatusText(statusOfError(a.err).Message, pods...))
	if a.late {
		says = fmt.Sprintf("it did not answer within %s; is one of its webhooks away?", writeTime)
	}
	switch a.step.verb {
	case create:
		return "it runs, but the cluster takes no mirror of it: " + says
	case remove:
		return "the cluster does not let its object go: " + says
	}
	return "the cluster does not take its status: " + says
}
