package backoff

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestBackoff checks that each wait is twice as long as the previous wait, up to the limit.
func TestBackoff(t *testing.T) {
	ms := func(all ...int) (waits []time.Duration) {
		for _, n := range all {
			waits = append(waits, time.Duration(n)*time.Millisecond)
		}
		return waits
	}
	for name, test := range map[string]struct {
		b    Backoff
		next func(*Backoff) time.Duration
		want []time.Duration
	}{
		"zero value":                   {Backoff{}, (*Backoff).Next, ms(200, 400, 800, 1600, 3200, 6400, 7000, 7000)},
		"first wait":                   {Backoff{InitialWait: 3 * time.Second}, (*Backoff).Next, ms(3000, 6000, 7000, 7000)},
		"other limit":                  {Backoff{}, func(b *Backoff) time.Duration { return b.NextUpTo(time.Second) }, ms(200, 400, 800, 1000, 1000)},
		"first wait above the limit":   {Backoff{InitialWait: 3 * time.Second}, func(b *Backoff) time.Duration { return b.NextUpTo(time.Second) }, ms(1000, 1000)},
		"limit above the longest wait": {Backoff{InitialWait: 6 * time.Second}, func(b *Backoff) time.Duration { return b.NextUpTo(30 * time.Second) }, ms(6000, 12000, 24000, 30000)},
	} {
		var got []time.Duration
		for range test.want {
			got = append(got, test.next(&test.b))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got waits %v, want %v", name, got, test.want)
		}
	}
}

func TestWithJitter(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 3, time.Second} {
		for range 1000 {
			if got := WithJitter(d); got > d || got < d-d/4 {
				t.Fatalf("%d ns: got %d ns, want %d to %d", d, got, d-d/4, d)
			}
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		startTime := time.Now()
		if !Sleep(t.Context(), time.Second) || time.Since(startTime) != time.Second {
			t.Errorf("got a return after %v, want true after 1s", time.Since(startTime))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		startTime = time.Now()
		if Sleep(ctx, time.Hour) || time.Since(startTime) != 2*time.Second {
			t.Errorf("with a context that is done after 2s: got a return after %v, want false after 2s", time.Since(startTime))
		}
	})
}
