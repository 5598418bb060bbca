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

// A reply is the result of a step.
type reply struct {
	key   types.NamespacedName
	step  step
	facts facts   // with which the step was decided
	pod   *v1.Pod // the response; nil: the pod does not exist
	err   error
	late  bool // there was no response within writeTimeout
}

// writeTimeout limits a request. It is long, because webhooks may delay the response for 30 s.
// The leaseRenewer closes hanging connections earlier.
const writeTimeout = 40 * time.Second

// request sends the request of a step. It is not an error if the pod to patch or delete does not
// exist, or if the pod to delete has another UID.
func (c *client) request(ctx context.Context, key types.NamespacedName, s step, f facts) reply {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	a := reply{key: key, step: s, facts: f, pod: &v1.Pod{}}
	switch s.verb {
	case verbCreate:
		a.err = c.doUntil(ctx, c.core.Post().Namespace(key.Namespace).Resource("pods").Body(s.pod), a.pod)
	case verbPatch:
		a.err = c.doUntil(ctx, c.core.Patch(types.StrategicMergePatchType).Namespace(key.Namespace).Resource("pods").Name(key.Name).SubResource("status").Body(s.body), a.pod)
		if apierrors.IsNotFound(a.err) {
			a.pod, a.err = nil, nil
		}
	case verbDelete:
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

// handleReply applies the reply to a request.
func (w *writer) handleReply(a reply, now time.Time) {
	w.requests--
	if a.step.verb == verbCreate {
		w.creates--
	}
	r := w.records[a.key]
	r.inFlight, r.facts = verbNone, facts{}
	if a.err != nil {
		w.handleFailure(r, a, now)
		return
	}
	w.pausedUntil, w.backoff, r.attempt = time.Time{}, backoff{}, retryState{}
	made := a.step.verb == verbCreate || r.outcome != nil && r.outcome.made && r.outcome.uid == a.step.pod.UID
	r.outcome = &outcome{uid: a.step.pod.UID, pod: a.pod, made: made, until: now.Add(outcomeTimeout)}
	if a.pod == nil {
		return
	}
	r.outcome.uid = a.pod.UID
	slim(a.pod)
	if a.step.verb == verbPatch {
		// An API server that does not support a field drops it, so that the patch would be repeated.
		f := a.facts
		f.remote = a.pod
		if again, _, err := decide(&f); err == nil && again.verb == verbPatch && bytes.Equal(again.body, a.step.body) {
			r.futile = string(a.step.body)
		}
	}
}

// The waits between attempts for one pod double from firstWait to one of these.
const (
	maxServerErrorWait = maxUncachedWait  // after an error of the API server
	maxRejectedWait    = 30 * time.Second // after a rejection, which is usually permanent
)

// handleFailure handles a failed request. If the API server cannot be reached, all requests
// pause; otherwise only those for this pod.
func (w *writer) handleFailure(r *record, a reply, now time.Time) {
	if !isAPIError(a.err) && !a.late {
		w.pausedUntil = now.Add(min(w.backoff.next(), maxUncachedWait))
		return
	}
	t := &r.attempt
	if t.why == "" {
		t.since = now
		if a.late {
			t.since = now.Add(-writeTimeout)
		}
	}
	limit := maxRejectedWait
	if code := apiStatus(a.err).Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || a.late {
		limit = maxServerErrorWait
	}
	t.wait = min(max(2*t.wait, firstWait), limit)
	t.of, t.why, t.next = a.step.pod.UID, rejectionMessage(a), now.Add(t.wait)
}

// apiStatus returns the status in an error response of the API server, or zero for another
// error.
func apiStatus(err error) metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{}
}

// A Rejection is a pod that cannot be written to the API server, with the reason.
type Rejection struct {
	Pod  types.NamespacedName
	Path string // position of the manifest, as in server.PodView
	Line int
	Why  string // for users
}

// rejectionDelay is how long attempts must fail before they are reported, because a namespace
// may be created shortly after a node has started.
const rejectionDelay = 2 * time.Second

// reportRejections logs new rejections and calls OnRejected if the rejections have changed.
func (w *writer) reportRejections(ctx context.Context) {
	var all []Rejection
	for key, r := range w.records {
		why := r.problem
		if t := r.attempt; t.why != "" && t.next.Sub(t.since) > rejectionDelay {
			why = t.why
		}
		if why == "" || r.local == nil {
			continue
		}
		all = append(all, Rejection{key, r.local.Path, r.local.Line, why})
	}
	slices.SortFunc(all, func(a, b Rejection) int { return cmp.Compare(a.Pod.String(), b.Pod.String()) })
	if slices.Equal(all, w.rejections) {
		return
	}
	for _, one := range all {
		if !slices.Contains(w.rejections, one) {
			w.o.Log.Warn("writing pod to the cluster failed; retrying", "pod", one.Pod, "err", one.Why)
		}
	}
	w.rejections = all
	w.o.OnRejected(ctx, all)
}

// rejectionMessage returns the message for users. Everybody can see it on the status page, so
// values of the pod that may be private are redacted: a webhook may quote any field, and a
// message in the status may be the end of a log.
func rejectionMessage(a reply) string {
	if apierrors.IsAlreadyExists(a.err) {
		return nameTaken
	}
	pods := []*v1.Pod{a.step.pod, a.facts.remote, a.facts.last}
	if a.facts.local != nil {
		pods = append(pods, a.facts.local.Pod)
	}
	message := sanitize(redact.StatusText(apiStatus(a.err).Message, pods...))
	if a.late {
		message = fmt.Sprintf("no response within %s; check the admission webhooks of the cluster", writeTimeout)
	}
	switch a.step.verb {
	case verbCreate:
		return "creating the mirror pod failed: " + message
	case verbDelete:
		return "deleting the pod from the cluster failed: " + message
	}
	return "updating the status in the cluster failed: " + message
}
