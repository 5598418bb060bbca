package server

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestChange_Properties checks that applying the changes that a watcher receives results in the
// newest View, no matter which Views the watcher missed.
func TestChange_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a-n1", "b-n1", "c-n1", "d-n1"}
		pods := map[string]*PodView{}
		var published, seen *View
		for rev := range uint64(rapid.IntRange(1, 12).Draw(t, "changes")) {
			name := rapid.SampledFrom(names).Draw(t, "name")
			if rapid.Bool().Draw(t, "gone") {
				delete(pods, name)
			} else {
				pods[name] = pod(name)
			}
			published = &View{Revision: rev}
			for _, n := range names {
				if pods[n] != nil {
					published.Pods = append(published.Pods, pods[n])
				}
			}
			if rapid.Bool().Draw(t, "missed") {
				continue
			}
			change := diff(seen, published)
			seen = change.Apply(seen)
			if diff := cmp.Diff(published, seen, cmp.Transformer("nil", nonNil)); diff != "" {
				t.Fatalf("after revision %d (-published +applied):\n%s", rev, diff)
			}
		}
	})
}

func nonNil(pods []*PodView) []PodView {
	out := []PodView{}
	for _, p := range pods {
		out = append(out, *p)
	}
	return out
}

func TestDiff(t *testing.T) {
	a, b, c := pod("a"), pod("b"), pod("c")
	before := &View{Revision: 1, Pods: []*PodView{a, b}}
	after := &View{Revision: 2, Pods: []*PodView{a, c}}
	got := diff(before, after)
	want := &Change{View: View{Revision: 2, Pods: []*PodView{c}}, Removed: keys("b")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	back := &Change{}
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, back); diff != "" {
		t.Errorf("through JSON (-sent +received):\n%s", diff)
	}
}

// TestWatchViews_SlowWatcher checks that a slow watcher receives the changes that it missed as a
// single change. A fast watcher receives every change. No change is sent twice.
func TestWatchViews_SlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := NewLatestView(&View{Revision: 1, Pods: []*PodView{pod("a")}})
		ctx, cancel := context.WithCancel(t.Context())
		changes, busy := make(chan *Change), make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- watchViews(ctx, state, 0, func(c *Change) error {
				changes <- c
				<-busy
				return nil
			})
		}()

		if c := <-changes; !c.IsComplete || c.Revision != 1 {
			t.Errorf("first change: got complete %v, revision %d, want true, 1", c.IsComplete, c.Revision)
		}
		for rev := uint64(2); rev <= 5; rev++ { // while the watcher is busy
			state.Publish(&View{Revision: rev, Pods: []*PodView{pod("a")}})
		}
		busy <- struct{}{}
		if c := <-changes; c.IsComplete || c.Revision != 5 || len(c.Pods) != 1 {
			t.Errorf("change after four Views were published: got complete %v, revision %d, %d pods, want false, 5, 1", c.IsComplete, c.Revision, len(c.Pods))
		}
		busy <- struct{}{}
		synctest.Wait()
		select {
		case c := <-changes:
			t.Errorf("got a change to revision %d, want none, because no View was published", c.Revision)
		default:
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("watchViews returned %v, want context.Canceled", err)
		}
	})
}

func TestWatchViews_KnownRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := NewLatestView(&View{Revision: 3, Pods: []*PodView{pod("a"), pod("b")}})
		stop := errors.New("enough")
		ended, got := make(chan error), (*Change)(nil)
		go func() {
			ended <- watchViews(t.Context(), state, 3, func(c *Change) error { got = c; return stop })
		}()
		synctest.Wait()
		if got != nil {
			t.Fatalf("got a change to revision %d, want none, because the watcher has this revision", got.Revision)
		}
		state.Publish(&View{Revision: 4, Pods: state.View().Pods[:1]})
		if err := <-ended; err != stop {
			t.Fatalf("watchViews returned %v, want the error of send", err)
		}
		if got.IsComplete || len(got.Pods) != 0 || len(got.Removed) != 1 {
			t.Errorf("got complete %v, %d pods, %d removed, want false, 0, 1", got.IsComplete, len(got.Pods), len(got.Removed))
		}
	})
}
