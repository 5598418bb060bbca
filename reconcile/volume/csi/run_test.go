package csi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestHangingChores: however many volumes a driver hangs with, it is asked for each of
// the others once before it is for one of those again.
func TestHangingChores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []chore
		tried := map[string]int{}
		for i := range 3 * mostChores {
			key := fmt.Sprint(i)
			all = append(all, chore{
				key: key, kind: "unstage " + driver, bad: func(error) {},
				do: func(context.Context) error { time.Sleep(2 * time.Minute); return errors.New("it hangs") },
			})
		}
		k := newKeeper(nil)
		learn := func() {
			r := <-k.done
			tried[r.key]++
			k.learn(r)
		}
		for range all {
			k.begin(t.Context(), all)
			learn()
		}
		for len(k.running) > 0 {
			learn()
		}
		for _, c := range all {
			if tried[c.key] == 0 {
				t.Errorf("chore %s was never tried; those that were: %v", c.key, tried)
			}
		}
	})
}
