package runonce

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/exit"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/state"
)

// A fakeRunner implements runner without running pods. When a pod becomes desired, the fakeRunner
// publishes the report of the pod in changes. One goroutine calls all methods except Down and
// ForceStop.
type fakeRunner struct {
	run     *runDriver
	changes map[string]func(*state.Report) // applied to newReport, by pod name; no report is published for other pods
	failed  chan struct{}                  // result of Failed
	err     error                          // result of Err

	mu         sync.Mutex    // guards all following fields
	desired    []string      // names of the pods in the order in which they became desired
	forceStops int           // number of calls of ForceStop
	isDown     bool          // Down was called
	stuck      chan struct{} // Down waits until stuck is closed; if stuck is nil, Down does not wait
}

func (s *fakeRunner) SetDesired(set *manifest.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.run.pods {
		key := p.Desired.Key
		if set.Pods[key] == nil || slices.Contains(s.desired, p.Name) {
			continue
		}
		s.desired = append(s.desired, p.Name)
		if change := s.changes[p.Name]; change != nil {
			s.run.publish(reconcile.Change{Reports: []*state.Report{newReport(p, change)}})
		}
	}
}

func (s *fakeRunner) Down(ctx context.Context) error {
	s.mu.Lock()
	s.isDown = true
	stuck := s.stuck
	s.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var removed []*state.Report
	for _, key := range s.run.o.Order {
		removed = append(removed, &state.Report{Key: key})
	}
	s.run.publish(reconcile.Change{Removed: removed})
	return nil
}

func (s *fakeRunner) ForceStop(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forceStops++
	if s.stuck != nil {
		close(s.stuck)
		s.stuck = nil
	}
	return nil
}

func (s *fakeRunner) Failed() <-chan struct{} { return s.failed }
func (s *fakeRunner) Err() error              { return s.err }

// drive calls runDriver.drive for a run of pods with the runner s. It checks that OnResult is called once
// and that the pods are stopped. stderr contains the messages of the run.
func drive(t *testing.T, o runOptions, s *fakeRunner, pods ...*manifest.Pod) (result *runResult, stderr string, err error) {
	t.Helper()
	var messages bytes.Buffer
	o.Set = &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}}
	for _, p := range pods {
		o.Set.Pods[p.Key] = p
		o.Order = append(o.Order, p.Key)
	}
	dir := t.TempDir()
	if o.Stdout == nil {
		o.Stdout = newLineStream("stdout", &bytes.Buffer{})
	}
	o.Stderr = newLineStream("stderr", &messages)
	o.LogDir = func(p *manifest.Pod) string { return dir + "/" + p.Key.Name }
	results := 0
	o.OnResult = func(*runResult) { results++ }
	s.run = newRunDriver(o)
	if s.failed == nil {
		s.failed = make(chan struct{})
	}
	result, err = s.run.drive(t.Context(), s)
	if results != 1 {
		t.Errorf("got %d calls of OnResult, want 1", results)
	}
	if !s.isDown {
		t.Error("got no call of Down, want one that stops the pods")
	}
	return result, messages.String(), err
}

// all returns a change of a report that consists of several changes.
func all(changes ...func(*state.Report)) func(*state.Report) {
	return func(r *state.Report) {
		for _, c := range changes {
			c(r)
		}
	}
}

// TestDrive_Order checks that the pods that run to completion start when the long-running pods are ready.
// When all pods that run to completion have ended, drive must stop the long-running pods.
func TestDrive_Order(t *testing.T) {
	s := &fakeRunner{changes: map[string]func(*state.Report){
		"db":  setReady,
		"a":   all(setExit("c", 0, 1, 1), setFinished),
		"bad": all(setExit("c", 3, 1, 1), setFinished),
	}}
	result, stderr, err := drive(t, runOptions{}, s, decodePods(t, podManifest("a", never, "c"), podManifest("db", always, "c"), podManifest("bad", never, "c"))...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"db", "a", "bad"}, s.desired); diff != "" {
		t.Errorf("order of starts (-want +got):\n%s", diff)
	}
	if result.Verdict.Code != 3 || result.FailedCount != 1 || s.forceStops != 0 {
		t.Errorf("got exit code %d, %d failed pods, %d calls of ForceStop; want exit code 3, 1 failed pod, no calls", result.Verdict.Code, result.FailedCount, s.forceStops)
	}
	if want := "podd: exit code 3; stopping db\n"; stderr != want {
		t.Errorf("got stderr %q, want %q", stderr, want)
	}
}

// TestDrive_Timeout checks the exit code after the timeout. drive must kill pods that do not stop.
func TestDrive_Timeout(t *testing.T) {
	s := &fakeRunner{changes: map[string]func(*state.Report){"a": setRunning("c")}, stuck: make(chan struct{})}
	result, _, err := drive(t, runOptions{Timeout: time.Millisecond}, s, decodePods(t, podManifest("a", never, "c"))...)
	if err != nil || result.Verdict.Code != exit.Timeout || s.forceStops != 1 {
		t.Errorf("got exit code %d, error %v, %d calls of ForceStop; want exit code %d, no error, 1 call", result.Verdict.Code, err, s.forceStops, exit.Timeout)
	}
}

// TestDrive_Interrupted checks that the first signal stops the pods with their grace periods, and that the
// second signal kills them.
func TestDrive_Interrupted(t *testing.T) {
	tests := []struct {
		signals, forceStops int
		stuck               bool // the pods do not stop within their grace periods
	}{
		{signals: 1},
		{signals: 2, forceStops: 1, stuck: true},
	}
	for _, test := range tests {
		signals := make(chan os.Signal, 3)
		for range test.signals {
			signals <- os.Interrupt
		}
		s := &fakeRunner{changes: map[string]func(*state.Report){"a": setRunning("c")}}
		if test.stuck {
			s.stuck = make(chan struct{})
		}
		result, _, err := drive(t, runOptions{Signals: signals}, s, decodePods(t, podManifest("a", never, "c"))...)
		if err != nil || result.Verdict.Code != exit.Interrupted || s.forceStops != test.forceStops {
			t.Errorf("%d signals: got exit code %d, error %v, %d calls of ForceStop; want exit code %d, no error, %d calls", test.signals, result.Verdict.Code, err, s.forceStops, exit.Interrupted, test.forceStops)
		}
	}
}

// A stuckRunner is a fakeRunner with pods that do not stop, even if they are killed.
type stuckRunner struct{ *fakeRunner }

func (stuckRunner) ForceStop(context.Context) error { return nil }

// TestDrive_ThirdSignal checks that the third signal ends the run although its pods have not stopped.
func TestDrive_ThirdSignal(t *testing.T) {
	signals := make(chan os.Signal, 3)
	for range 3 {
		signals <- os.Interrupt
	}
	p := decodePods(t, podManifest("a", never, "c"))[0]
	s := &fakeRunner{stuck: make(chan struct{}), failed: make(chan struct{})}
	results := 0
	s.run = newRunDriver(runOptions{
		Set: &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{p.Key: p}}, Order: []types.NamespacedName{p.Key},
		Stdout: newLineStream("stdout", &bytes.Buffer{}), Stderr: newLineStream("stderr", &bytes.Buffer{}),
		LogDir: func(*manifest.Pod) string { return t.TempDir() }, Signals: signals, OnResult: func(*runResult) { results++ },
	})
	result, err := s.run.drive(t.Context(), stuckRunner{s})
	if !errors.Is(err, errPodsRemain) || result.Verdict.Code != exit.Interrupted || results != 1 {
		t.Errorf("got exit code %d, error %v, %d calls of OnResult; want exit code %d, error %v, 1 call", result.Verdict.Code, err, results, exit.Interrupted, errPodsRemain)
	}
}

// TestDrive_Broken checks the exit code and the reason of a run that ends because the runner fails, or
// because the output cannot be written.
func TestDrive_Broken(t *testing.T) {
	s := &fakeRunner{failed: make(chan struct{}), err: errors.New("no socket of the runtime"), stuck: make(chan struct{})}
	close(s.failed)
	result, _, err := drive(t, runOptions{}, s, decodePods(t, podManifest("a", never, "c"))...)
	if result.Verdict.Code != exit.Internal || !errors.Is(err, s.err) || result.Verdict.Why != s.err.Error() {
		t.Errorf("runner failed: got exit code %d, error %v, reason %q; want exit code %d, and the error of the runner as error and as reason", result.Verdict.Code, err, result.Verdict.Why, exit.Internal)
	}
	stdout := newLineStream("stdout", failingWriter{})
	_ = stdout.write("c", "", nil, true)
	_ = stdout.Flush()
	result, _, err = drive(t, runOptions{Stdout: stdout}, &fakeRunner{}, decodePods(t, podManifest("a", never, "c"))...)
	if result.Verdict.Code != exit.Internal || err != nil || result.Verdict.Why != "writing stdout: broken pipe" {
		t.Errorf("writing stdout failed: got exit code %d, error %v, reason %q; want exit code %d, no error, and the error of stdout as reason", result.Verdict.Code, err, result.Verdict.Why, exit.Internal)
	}
}

// A failingWriter fails every write.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestDisplayNames checks that the display name of a pod includes its namespace if pods of several
// namespaces have the same name.
func TestDisplayNames(t *testing.T) {
	other := strings.Replace(podManifest("a", never, "c"), "{name: a}", "{name: a, namespace: x}", 1)
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}}
	var order []types.NamespacedName
	for _, p := range decodePods(t, podManifest("a", never, "c"), other, podManifest("b", never, "c")) {
		set.Pods[p.Key] = p
		order = append(order, p.Key)
	}
	byKey := displayNames(set, order)
	if got := byKey[order[0]] + " " + byKey[order[1]] + " " + byKey[order[2]]; got != "default/a x/a b" {
		t.Errorf("got names %q, want \"default/a x/a b\"", got)
	}
}
