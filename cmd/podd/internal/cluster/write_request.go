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
)

// reply is what the API server says to a step, which was decided by facts.
type reply struct {
	key   types.NamespacedName
	step  step
	facts facts
	pod   *v1.Pod
	err   error
	late  bool // err is that there was no answer within writeTime
}

// writeTime is how long a step may take: a webhook of the cluster may have the API
// server wait for 30 s. Connections on which nobody answers are closed before (lessee).
const writeTime = 40 * time.Second

// request does a step. What is gone, or is another pod now, is not there to be
// deleted any more.
func (c *client) request(ctx context.Context, key types.NamespacedName, s step, f facts) reply {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	a := reply{key: key, step: s, facts: f, pod: &v1.Pod{}}
	switch s.verb {
	case create:
		a.err = c.answer(ctx, c.core.Post().Namespace(key.Namespace).Resource("pods").Body(s.pod), a.pod)
	case patches:
		a.err = c.answer(ctx, c.core.Patch(types.StrategicMergePatchType).Namespace(key.Namespace).Resource("pods").Name(key.Name).SubResource("status").Body(s.body), a.pod)
		if apierrors.IsNotFound(a.err) {
			a.pod, a.err = nil, nil
		}
	case remove:
		o := &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &s.pod.UID}}
		a.err = c.answer(ctx, c.core.Delete().Namespace(key.Namespace).Resource("pods").Name(key.Name).Body(o), a.pod)
		if apierrors.IsNotFound(a.err) || apierrors.IsConflict(a.err) {
			a.err = nil
		}
		if len(a.pod.Finalizers) == 0 { // else it stays until others are done with it
			a.pod = nil
		}
	}
	a.late = a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	return a
}

// take notes an answer.
func (w *writer) take(a reply, now time.Time) {
	w.asking--
	if a.step.verb == create {
		w.making--
	}
	r := w.records[a.key]
	r.asked, r.facts = nothing, facts{}
	if a.err != nil {
		w.failed(r, a, now)
		return
	}
	w.hold, w.away, r.attempt = time.Time{}, backoff{}, attempted{}
	made := a.step.verb == create || r.answer != nil && r.answer.made && r.answer.uid == a.step.pod.UID
	r.answer = &outcome{uid: a.step.pod.UID, pod: a.pod, made: made, until: now.Add(outcomeTime)}
	if a.pod == nil {
		return
	}
	r.answer.uid = a.pod.UID
	slim(a.pod)
	if a.step.verb == patches {
		// An API server that does not know a field drops it, each time.
		f := a.facts
		f.seen = a.pod
		if again, _, err := decide(&f); err == nil && again.verb == patches && bytes.Equal(again.body, a.step.body) {
			r.futile = string(a.step.body)
		}
	}
}

// The waits between attempts for one pod begin with firstWait and double.
const (
	mostIll     = mostBlind        // the API server cannot now
	mostRefused = 30 * time.Second // it will not, until something is changed
)

// failed notes an attempt that came to nothing. When nobody answers, nobody would
// for another pod, unless it is this one that the API server is long over.
func (w *writer) failed(r *record, a reply, now time.Time) {
	if !answered(a.err) && !a.late {
		w.hold = now.Add(min(w.away.next(), mostBlind))
		return
	}
	t := &r.attempt
	if t.why == "" {
		t.since = now
		if a.late {
			t.since = now.Add(-writeTime)
		}
	}
	most := mostRefused
	if code := statusOfError(a.err).Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || a.late {
		most = mostIll
	}
	t.wait = min(max(2*t.wait, firstWait), most)
	t.of, t.why, t.next = a.step.pod.UID, whyNot(a), now.Add(t.wait)
}

// statusOfError is what an API server says that refuses.
func statusOfError(err error) metav1.Status {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return refused.Status()
	}
	return metav1.Status{}
}

// Refusal is what keeps the cluster from knowing a pod as it is.
type Refusal struct {
	Pod  types.NamespacedName
	Path string // as in server.PodView
	Line int
	Why  string
}

// patience is how long an attempt may fail before users are told: namespaces come up
// with the cluster.
const patience = 2 * time.Second

// tell has users know of what is refused, when that is another thing than it was.
func (w *writer) tell(ctx context.Context) {
	var all []Refusal
	for key, r := range w.records {
		why := r.trouble
		if t := r.attempt; t.why != "" && t.next.Sub(t.since) > patience {
			why = t.why
		}
		if why == "" || r.mine == nil {
			continue
		}
		all = append(all, Refusal{key, r.mine.Path, r.mine.Line, why})
	}
	slices.SortFunc(all, func(a, b Refusal) int { return cmp.Compare(a.Pod.String(), b.Pod.String()) })
	if slices.Equal(all, w.told) {
		return
	}
	for _, one := range all {
		if !slices.Contains(w.told, one) {
			w.o.Log.Warn("cluster", "pod", one.Pod, "why", one.Why)
		}
	}
	w.told = all
	w.o.Refused(ctx, all)
}

// whyNot is for users.
func whyNot(a reply) string {
	if apierrors.IsAlreadyExists(a.err) {
		return nameTaken
	}
	says := said(statusOfError(a.err).Message)
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
