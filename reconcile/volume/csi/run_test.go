package csi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestHangingTasks checks that every task is started once before a task that hung is retried.
func TestHangingTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []task
		tried := map[string]int{}
		for i := range 3 * maxTasks {
			key := fmt.Sprint(i)
			all = append(all, task{
				key: key, kind: "unstage " + driver, onFailure: func(error) {},
				do: func(context.Context) error { time.Sleep(2 * time.Minute); return errors.New("it hangs") },
			})
		}
		k := newRunner(nil)
		handleResult := func() {
			r := <-k.done
			tried[r.key]++
			k.handleResult(r)
		}
		for range all {
			k.startTasks(t.Context(), all)
			handleResult()
		}
		for len(k.running) > 0 {
			handleResult()
		}
		for _, c := range all {
			if tried[c.key] == 0 {
				t.Errorf("task %s: got 0 attempts, want at least 1; attempts by task: %v", c.key, tried)
			}
		}
	})
}
