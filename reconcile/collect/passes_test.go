package collect

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestPasses checks that callers that wait for a pass in progress share the next pass. Each
// caller gets the errors of its own pod and the errors of all pods.
func TestPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, goOn := &RemovalBatcher{}, make(chan struct{})
		var passes [][]types.UID // one pass at a time
		remove := func(uids sets.Set[types.UID]) failures {
			passes = append(passes, sets.List(uids))
			<-goOn
			failed := failures{"b": {errors.New("logs of b")}}
			if len(passes) != 2 {
				failed.add(allPods, fmt.Errorf("pass %d", len(passes)))
			}
			return failed
		}
		var all sync.WaitGroup
		want := func(uid types.UID, message string) {
			all.Go(func() {
				if err := p.removeShared(uid, remove); fmt.Sprint(err) != message {
					t.Errorf("removal of pod %s: got error %v, want %q", uid, err, message)
				}
			})
			synctest.Wait()
		}
		want("a", "pass 1")
		want("b", "logs of b")
		want("c", "<nil>")
		goOn <- struct{}{}
		synctest.Wait()
		want("d", "pass 3")
		goOn <- struct{}{}
		goOn <- struct{}{}
		all.Wait()
		if got := fmt.Sprint(passes); got != "[[a] [b c] [d]]" {
			t.Errorf("UIDs of each pass: got %s, want [[a] [b c] [d]]", got)
		}
	})
}

func TestPasses_Nil(t *testing.T) {
	var p *RemovalBatcher
	err := p.removeShared("a", func(uids sets.Set[types.UID]) failures {
		if !uids.Equal(sets.New[types.UID]("a")) {
			t.Errorf("UIDs of the pass: got %v, want only a", uids)
		}
		return failures{"a": {errors.New("failed")}}
	})
	if fmt.Sprint(err) != "failed" {
		t.Errorf("got error %v, want \"failed\"", err)
	}
}
