package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seconds cuts a time to whole seconds, as every writer and reader of a status
// must see the same value. The zero time stays zero.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.Time{Time: time.Unix(t.Unix(), 0).UTC()}
}

// moment is a time of the runtime's clock. One later than now counts as now,
// and then before keeps what was said the last time about the same thing, so
// that it does not move with the clock; before may be zero.
func moment(t, now time.Time, before metav1.Time) metav1.Time {
	if !t.After(now) {
		return seconds(t)
	}
	if !before.IsZero() && !before.After(now) {
		return seconds(before.Time)
	}
	return seconds(now)
}
