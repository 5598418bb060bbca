package eventsender

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/clustertest"
)

// TestSpamFilter_Limit checks that a spamFilter has at most maxSpamBuckets buckets, and always allows
// the first event of an object.
func TestSpamFilter_Limit(t *testing.T) {
	f, now := spamFilter{}, clustertest.Noon
	for i := range 3 * maxSpamBuckets {
		e := &v1.Event{Type: "Normal", InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: fmt.Sprint(i)}}
		now = now.Add(time.Millisecond)
		if !f.allows(e, now) {
			t.Fatalf("pod %d: got its first event rejected, want it allowed", i)
		}
	}
	if len(f) > maxSpamBuckets {
		t.Errorf("got %d buckets, want at most %d", len(f), maxSpamBuckets)
	}
}
