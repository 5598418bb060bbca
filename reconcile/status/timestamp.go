package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wholeSecond returns t truncated to whole seconds, because metav1.Time is serialized with this
// precision. So a status has the same times before and after it is serialized. The zero time stays
// zero.
func wholeSecond(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.Time{Time: time.Unix(t.Unix(), 0).UTC()}
}

// timestamp returns t, a time of the runtime's clock, in whole seconds. If t is later than now,
// timestamp returns previous, the time in the previous status, so that the time does not change. If
// previous is zero or later than now, timestamp returns now.
func timestamp(t, now time.Time, previous metav1.Time) metav1.Time {
	if !t.After(now) {
		return wholeSecond(t)
	}
	if !previous.IsZero() && !previous.After(now) {
		return wholeSecond(previous.Time)
	}
	return wholeSecond(now)
}
