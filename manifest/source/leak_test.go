package source

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// held lists the resources of the process that a source could leave behind.
func held(t *testing.T) (goroutines, fds int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(entries)
}

// Sources that have stopped leave no resources, whatever happened to them.
func TestSourcesLeaveNothing(t *testing.T) {
	d := newTree(t)
	d.write("a.yaml", yaml("a"))
	d.write("b.yaml", broken)
	if err := os.Symlink("../elsewhere", d.in("c.yaml")); err != nil {
		t.Fatal(err)
	}
	writing, err := os.Create(d.in("d.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Close()
	u, err := NewURL("http://127.0.0.1:1/nobody", urlOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	once := func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sets := Watch(ctx, NewDir(d.path, o), NewDir(d.in("a.yaml"), o), NewDir(filepath.Join(d.path, "none"), o), u)
		for set := range sets {
			if len(set.Problems) > 3 {
				cancel()
			}
		}
	}
	once() // what the first use of net and os starts stays
	goroutines, fds := held(t)
	for range 10 {
		once()
	}
	awaitHeld(t, goroutines, fds)
}

// awaitHeld waits until no more than these resources are held. A connection ends a moment
// after it is closed.
func awaitHeld(t *testing.T, goroutines, fds int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		g, f := held(t)
		if g <= goroutines && f <= fds {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines and %d fds, want %d and %d at most\n%s", g, f, goroutines, fds, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// The connection of a URL ends with its source. Otherwise the synctest bubble would not
// end.
func TestURLLeavesNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, list("a"))
		r := poll(t, f.url("/x", urlOptions(t)))
		r.untilPods("a")
		r.stop()
	})
}

// A server that does not respond does not delay the stop.
func TestURLStopsDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		f := newFleet(t, nil)
		f.now(func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
		})
		r := poll(t, f.url("/x", urlOptions(t)))
		<-asked
		began := time.Now()
		r.stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("ended after %v, want at once", took)
		}
		if all, _ := r.batches(); len(all) != 0 {
			t.Errorf("the end was told as %s", show(all[0]))
		}
	})
}

// Neither names nor Problems show the secret parts of a URL.
func TestURLShowsNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := urlOptions(t)
		o.Header = map[string][]string{"Authorization": {"Bearer hunter2"}}
		f := newFleet(t, status(401))
		u, err := NewURL("http://me:hunter2@127.0.0.1/x?key=hunter2", o)
		if err != nil {
			t.Fatal(err)
		}
		u.dial = f.wire.dial
		r := poll(t, u)
		b := r.untilProblem("401 Unauthorized")
		f.now(raw(""))
		b2 := r.untilProblem("EOF")
		for _, text := range []string{u.Name(), show(b), show(b2)} {
			if strings.Contains(text, "hunter2") || strings.Contains(text, "me:") {
				t.Errorf("shown: %s", text)
			}
		}
		if f.requests()[0].header.Get("Authorization") != "Bearer hunter2" {
			t.Error("the header was not sent")
		}
		r.stop()
	})
}
