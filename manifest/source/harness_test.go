package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"podd/manifest"
)

// yaml returns a manifest with these pods, given as "name" or "name=arg".
func yaml(names ...string) string {
	var docs []string
	for _, n := range names {
		name, arg, _ := strings.Cut(n, "=")
		docs = append(docs, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  containers:\n  - {name: c, image: i, args: [%q]}\n", name, arg))
	}
	return strings.Join(docs, "---\n")
}

// broken is a manifest with an invalid pod.
const broken = "apiVersion: v1\nkind: Pod\nmetadata: {name: broken}\nspec: {containers: []}\n"

// tree is a directory of manifests under test.
type tree struct {
	t    *testing.T
	path string
}

func newTree(t *testing.T) tree {
	t.Helper()
	return tree{t, filepath.Join(t.TempDir(), "m")}.mkdir()
}

func (d tree) mkdir() tree {
	d.t.Helper()
	if err := os.Mkdir(d.path, 0o755); err != nil {
		d.t.Fatal(err)
	}
	return d
}

// in returns the path of a file in the directory.
func (d tree) in(name string) string { return filepath.Join(d.path, name) }

// write writes a file in place, with one system call.
func (d tree) write(name, content string) {
	d.t.Helper()
	if err := os.WriteFile(d.in(name), []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d tree) rename(from, to string) {
	d.t.Helper()
	if err := os.Rename(d.in(from), d.in(to)); err != nil {
		d.t.Fatal(err)
	}
}

func (d tree) remove(name string) {
	d.t.Helper()
	if err := os.RemoveAll(d.in(name)); err != nil {
		d.t.Fatal(err)
	}
}

// testOptions returns the options of a source with a cache and without periodic checks.
func testOptions(t *testing.T) Options {
	return Options{NodeName: "node", CacheDir: filepath.Join(t.TempDir(), "sources"), CheckFrequency: time.Hour}
}

// running is a source that runs in the background, with the Batches it has emitted.
type running struct {
	t      *testing.T
	limit  time.Duration
	stop   func()
	mu     sync.Mutex // guards all following fields
	all    []manifest.Batch
	update chan struct{} // closed at every emission
}

// run starts a source. The source stops when the test ends or calls stop.
func run(t *testing.T, s Source) *running {
	t.Helper()
	return runWithin(t, s, 5*time.Minute)
}

// runWithin is like run, but with a time limit for each wait.
func runWithin(t *testing.T, s Source, limit time.Duration) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, limit: limit, update: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, r.emit) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run of %s: %v", s.Name(), err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *running) emit(b manifest.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, b)
	close(r.update)
	r.update = make(chan struct{})
}

// batches returns all emitted Batches. The channel updated is closed when the source emits the next
// Batch.
func (r *running) batches() (all []manifest.Batch, updated <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all), r.update
}

// await waits until ok accepts the newest Batch, and returns this Batch. If the time limit is
// reached, the second result describes the newest Batch; otherwise it is "".
func (r *running) await(ok func(manifest.Batch) bool) (accepted manifest.Batch, instead string) {
	timeout := time.After(r.limit)
	for {
		all, update := r.batches()
		if len(all) > 0 && ok(all[len(all)-1]) {
			return all[len(all)-1], ""
		}
		select {
		case <-update:
		case <-timeout:
			if len(all) == 0 {
				return manifest.Batch{}, "nothing"
			}
			return manifest.Batch{}, show(all[len(all)-1])
		}
	}
}

// until waits until ok accepts the newest Batch. If the time limit is reached, the test fails with
// a message that contains the parameter what.
func (r *running) until(what string, ok func(manifest.Batch) bool) manifest.Batch {
	r.t.Helper()
	b, instead := r.await(ok)
	if instead != "" {
		r.t.Fatalf("waiting for %s: got %s", what, instead)
	}
	return b
}

// untilPods waits for exactly these pods.
func (r *running) untilPods(names ...string) manifest.Batch {
	r.t.Helper()
	want := strings.Join(names, " ")
	return r.until("pods "+want, func(b manifest.Batch) bool { return podsOf(b) == want })
}

// untilProblem waits for these pods and a Problem with this text in it.
func (r *running) untilProblem(text string, names ...string) manifest.Batch {
	r.t.Helper()
	want := strings.Join(names, " ")
	return r.until(fmt.Sprintf("problem %q with pods %q", text, want), func(b manifest.Batch) bool {
		return podsOf(b) == want && strings.Contains(problemsOf(b), text)
	})
}

// podsOf returns the pods of a Batch as "name" or "name=arg", in the order of the Batch.
func podsOf(b manifest.Batch) string {
	var names []string
	for _, p := range b.Pods {
		name := strings.TrimSuffix(p.Key.Name, "-node")
		if args := p.Object.Spec.Containers[0].Args; len(args) > 0 && args[0] != "" {
			name += "=" + args[0]
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// problemsOf returns the Problems of a Batch, one per line.
func problemsOf(b manifest.Batch) string {
	var lines []string
	for _, p := range b.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// show returns a Batch as text for failures.
func show(b manifest.Batch) string {
	s := fmt.Sprintf("pods %q complete %v", podsOf(b), b.IsComplete)
	for _, f := range b.FileStates {
		s += fmt.Sprintf("\n\t%s digest %.12s, outdated because of %q (current if \"\")", f.Path, f.Digest, f.OutdatedReason)
	}
	return s + "\n" + problemsOf(b)
}
