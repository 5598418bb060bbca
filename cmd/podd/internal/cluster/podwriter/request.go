package podwriter

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

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/manifest/order"
	"podd/manifest/redact"
)

// A reply is the result of a podRequest.
type reply struct {
	key      types.NamespacedName
	request  podRequest
	facts    podFacts // the facts of the decision for the request
	pod      *v1.Pod  // the pod in the response; nil if the pod does not exist
	err      error
	timedOut bool // there was no response within apiserver.WriteTimeout
}

// sendPodRequest sends the request s for the pod with the name key with c and returns the reply. It is not
// an error if the pod to patch or delete does not exist, or if the pod to delete has another UID.
func sendPodRequest(ctx context.Context, c *apiserver.Client, key types.NamespacedName, s podRequest, f podFacts) reply {
	ctx, cancel := context.WithTimeout(ctx, apiserver.WriteTimeout)
	defer cancel()
	a := reply{key: key, request: s, facts: f, pod: &v1.Pod{}}
	switch s.verb {
	case verbCreate:
		a.err = c.DoWithoutTimeout(ctx, c.Core.Post().Namespace(key.Namespace).Resource("pods").Body(s.pod), a.pod)
	case verbPatch:
		a.err = c.DoWithoutTimeout(ctx, c.Core.Patch(types.StrategicMergePatchType).Namespace(key.Namespace).Resource("pods").Name(key.Name).SubResource("status").Body(s.body), a.pod)
		if apierrors.IsNotFound(a.err) {
			a.pod, a.err = nil, nil
		}
	case verbDelete:
		o := &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &s.pod.UID}}
		a.err = c.DoWithoutTimeout(ctx, c.Core.Delete().Namespace(key.Namespace).Resource("pods").Name(key.Name).Body(o), a.pod)
		if apierrors.IsNotFound(a.err) || apierrors.IsConflict(a.err) {
			a.err = nil
		}
		if len(a.pod.Finalizers) == 0 { // only a pod with finalizers still exists
			a.pod = nil
		}
	}
	a.timedOut = a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	return a
}

// handleReply updates the record of a pod after a request.
func (w *Writer) handleReply(a reply, now time.Time) {
	w.requestsInFlight--
	if a.request.verb == verbCreate {
		w.createsInFlight--
	}
	r := w.records[a.key]
	r.inFlight, r.facts = verbNone, podFacts{}
	if a.err != nil {
		if !a.request.changedAt.IsZero() {
			r.changedAt = a.request.changedAt
		}
		w.handleFailure(r, a, now)
		return
	}
	if w.o.OnStatusSynced != nil && a.pod != nil && !a.request.changedAt.IsZero() {
		w.o.OnStatusSynced(now.Sub(a.request.changedAt))
	}
	w.pausedUntil, w.backoff, r.retry = time.Time{}, backoff.Backoff{}, retryState{}
	isCreated := a.request.verb == verbCreate || r.outcome != nil && r.outcome.isCreated && r.outcome.uid == a.request.pod.UID
	r.outcome = &outcome{uid: a.request.pod.UID, pod: a.pod, isCreated: isCreated, expiresAt: now.Add(outcomeTimeout)}
	if a.pod == nil {
		return
	}
	r.outcome.uid = a.pod.UID
	apiserver.DropUnusedFields(a.pod)
	if a.request.verb == verbPatch {
		// Record the patch if the API server has ignored it because of a field that the API server
		// does not support. Otherwise the patch would be repeated forever.
		f := a.facts
		f.remote = a.pod
		if nextRequest, _, err := decideRequest(&f); err == nil && nextRequest.verb == verbPatch && bytes.Equal(nextRequest.body, a.request.body) {
			r.ignoredPatch = string(a.request.body)
		}
	}
}

// The wait between attempts for one pod doubles from backoff.FirstWait to one of these limits.
const (
	maxServerErrorWait = apiserver.MaxUncachedWait // after a server error or a timeout
	maxRejectedWait    = 30 * time.Second          // after a rejection; long, because a retry is usually rejected, too
)

// handleFailure delays the next request after a failed request. If the API server cannot be
// reached, it delays the requests for all pods, otherwise only the requests for this pod.
func (w *Writer) handleFailure(r *podRecord, a reply, now time.Time) {
	if !apiserver.IsAPIError(a.err) && !a.timedOut {
		w.pausedUntil = now.Add(min(w.backoff.Next(), apiserver.MaxUncachedWait))
		return
	}
	t := &r.retry
	if t.reason == "" {
		t.failingSince = now
		if a.timedOut {
			t.failingSince = now.Add(-apiserver.WriteTimeout)
		}
	}
	limit := maxRejectedWait
	if code := apiStatus(a.err).Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || a.timedOut {
		limit = maxServerErrorWait
	}
	t.wait = min(max(2*t.wait, backoff.FirstWait), limit)
	t.uid, t.reason, t.nextAttempt = a.request.pod.UID, rejectionMessage(a), now.Add(t.wait)
}

// apiStatus returns the status in an error response of the API server, or the zero Status for
// another error.
func apiStatus(err error) metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{}
}

// A Rejection reports that a pod cannot be written to the API server.
type Rejection struct {
	Pod    types.NamespacedName
	Path   string // position of the manifest, as in server.PodView
	Line   int
	Reason string // reason for users, with the remedy if there is one
}

// rejectionDelay is the time for which attempts must fail before a rejection is reported. Without
// the delay, podd would report a rejection if the namespace of a pod is created shortly after a
// node has started.
const rejectionDelay = 2 * time.Second

// reportRejections logs new rejections and calls OnRejected if the rejections have changed.
func (w *Writer) reportRejections(ctx context.Context) {
	var rejections []Rejection
	for key, r := range w.records {
		reason := r.problem
		if t := r.retry; t.reason != "" && t.nextAttempt.Sub(t.failingSince) > rejectionDelay {
			reason = t.reason
		}
		if reason == "" || r.local == nil {
			continue
		}
		rejections = append(rejections, Rejection{key, r.local.Path, r.local.Line, reason})
	}
	order.Slice(rejections, func(a, b Rejection) int { return cmp.Compare(a.Pod.String(), b.Pod.String()) })
	if slices.Equal(rejections, w.rejections) {
		return
	}
	for _, rejection := range rejections {
		if !slices.Contains(w.rejections, rejection) {
			w.o.Log.Warn("writing a pod to the API server failed; retrying", "pod", rejection.Pod, "err", rejection.Reason)
		}
	}
	w.rejections = rejections
	w.o.OnRejected(ctx, rejections)
}

// rejectionMessage returns the reason why a request failed, for users. Values of the pod that may
// be private are redacted, because every user can see the reason on the status page. A webhook may
// quote any field, and a message in the status may be the last lines of a log.
func rejectionMessage(a reply) string {
	if apierrors.IsAlreadyExists(a.err) {
		return nameTaken
	}
	pods := []*v1.Pod{a.request.pod, a.facts.remote, a.facts.lastLocal}
	if a.facts.local != nil {
		pods = append(pods, a.facts.local.Pod)
	}
	message := apiserver.Sanitize(redact.StatusText(apiStatus(a.err).Message, pods...))
	if a.timedOut {
		message = fmt.Sprintf("no response within %s; check the admission webhooks of the cluster", apiserver.WriteTimeout)
	}
	switch a.request.verb {
	case verbCreate:
		return "creating the mirror pod failed: " + message
	case verbDelete:
		return "deleting the pod from the cluster failed: " + message
	}
	return "updating the status in the cluster failed: " + message
}
