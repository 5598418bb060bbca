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

// countResources returns the numbers of goroutines and open files of the process.
func countResources(t *testing.T) (goroutines, fds int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(entries)
}

// TestWatch_LeaksNothing checks that stopped sources release all resources.
func TestWatch_LeaksNothing(t *testing.T) {
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
	u, err := NewURL("http://127.0.0.1:1/none", urlOptions(t))
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
	once() // the first use of net and os starts goroutines that never stop
	goroutines, fds := countResources(t)
	for range 10 {
		once()
	}
	awaitResources(t, goroutines, fds)
}

// awaitResources waits until the process has at most these numbers of goroutines and open files. The
// wait is necessary because connections are closed asynchronously.
func awaitResources(t *testing.T, goroutines, fds int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for {
		g, f := countResources(t)
		if g <= goroutines && f <= fds {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			stacks := make([]byte, 1<<16)
			t.Fatalf("got %d goroutines and %d open files, want at most %d and %d\n%s", g, f, goroutines, fds, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestURL_ClosesConnection checks that a source closes its connection when it stops. Otherwise
// the synctest bubble would not end.
func TestURL_ClosesConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t, list("a"))
		r := poll(t, f.url("/x", urlOptions(t)))
		r.untilPods("a")
		r.stop()
	})
}

// TestURL_StopsDuringRequest checks that a server which does not respond does not delay the
// stop.
func TestURL_StopsDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requested := make(chan struct{})
		f := newFakeServer(t, nil)
		f.handle(func(_ http.ResponseWriter, r *http.Request) {
			close(requested)
			<-r.Context().Done()
		})
		r := poll(t, f.url("/x", urlOptions(t)))
		<-requested
		began := time.Now()
		r.stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("stop took %v, want 0s", took)
		}
		if all, _ := r.batches(); len(all) != 0 {
			t.Errorf("batches emitted while stopping: got %s, want none", show(all[0]))
		}
	})
}

// TestURL_HidesSecrets checks that names and Problems do not contain the secret parts of a
// URL.
func TestURL_HidesSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := urlOptions(t)
		o.Header = map[string][]string{"Authorization": {"Bearer hunter2"}}
		f := newFakeServer(t, status(401))
		u, err := NewURL("http://me:hunter2@127.0.0.1/x?key=hunter2", o)
		if err != nil {
			t.Fatal(err)
		}
		u.dial = f.wire.dial
		r := poll(t, u)
		b := r.untilProblem("401 Unauthorized")
		f.handle(raw(""))
		b2 := r.untilProblem("EOF")
		for _, text := range []string{u.Name(), show(b), show(b2)} {
			if strings.Contains(text, "hunter2") || strings.Contains(text, "me:") {
				t.Errorf("got a secret part of the URL in %s, want none", text)
			}
		}
		if f.requests()[0].header.Get("Authorization") != "Bearer hunter2" {
			t.Error("request: got no Authorization header, want the configured header")
		}
		r.stop()
	})
}
