package runonce

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/exit"
	"podd/manifest"
	"podd/reconcile"
)

// stage is a Machine in memory: what a pod says when it is wanted is written
// down beforehand. Its methods are called by one goroutine but for Down.
type stage struct {
	run *Run
	say map[string]func(*reconcile.Report) // by the pod's name; nil says nothing

	mu      sync.Mutex // guards all following fields
	wanted  []string
	hurried int
	down    bool
	failed  chan struct{}
	err     error
	stuck   chan struct{} // Down waits for it, if not nil
}

func (s *stage) SetDesired(set *manifest.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.run.pods {
		key := p.Desired.Key
		if set.Pods[key] == nil || contains(s.wanted, p.Name) {
			continue
		}
		s.wanted = append(s.wanted, p.Name)
		if say := s.say[p.Name]; say != nil {
			s.run.Publish(reconcile.Change{Reports: []*reconcile.Report{report(p, say)}})
		}
	}
}

func contains(all []string, s string) bool {
	return strings.Contains(strings.Join(all, " ")+" ", s+" ")
}

func (s *stage) Down(ctx context.Context) error {
	s.mu.Lock()
	s.down = true
	stuck := s.stuck
	s.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.run.Publish(reconcile.Change{Gone: s.run.o.Order})
	return nil
}

func (s *stage) ForceStop(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried++
	if s.stuck != nil {
		close(s.stuck)
		s.stuck = nil
	}
	return nil
}

func (s *stage) Failed() <-chan struct{} { return s.failed }
func (s *stage) Err() error              { return s.err }

// play drives a run of pods that say what they are told to.
func play(t *testing.T, o Options, s *stage, pods ...*manifest.Pod) (result *Result, stderr string, err error) {
	t.Helper()
	var talk bytes.Buffer
	o.Set = &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}}
	for _, p := range pods {
		o.Set.Pods[p.Key] = p
		o.Order = append(o.Order, p.Key)
	}
	dir := t.TempDir()
	if o.Stdout == nil {
		o.Stdout = NewStream("stdout", &bytes.Buffer{})
	}
	o.Stderr = NewStream("stderr", &talk)
	o.LogDir = func(p *manifest.Pod) string { return dir + "/" + p.Key.Name }
	known := 0
	o.OnResult = func(*Result) { known++ }
	s.run = New(o)
	if s.failed == nil {
		s.failed = make(chan struct{})
	}
	result, err = s.run.Drive(t.Context(), s)
	if known != 1 {
		t.Errorf("the result was told %d times", known)
	}
	if !s.down {
		t.Error("the pods were not ended")
	}
	return result, talk.String(), err
}

func both(changes ...func(*reconcile.Report)) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		for _, c := range changes {
			c(r)
		}
	}
}

// TestDriveInOrder: the pods that end start when the others are ready, and all
// are ended after the last of them.
func TestDriveInOrder(t *testing.T) {
	s := &stage{say: map[string]func(*reconcile.Report){
		"db":  isReady,
		"a":   both(exited("c", 0, 1, 1), isFinished),
		"bad": both(exited("c", 3, 1, 1), isFinished),
	}}
	result, stderr, err := play(t, Options{}, s, wanted(t, manifestOf("a", never, "c"), manifestOf("db", always, "c"), manifestOf("bad", never, "c"))...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"db", "a", "bad"}, s.wanted); diff != "" {
		t.Errorf("started in another order:\n%s", diff)
	}
	if result.Verdict.Code != 3 || result.Failed != 1 || s.hurried != 0 {
		t.Errorf("code %d, %d failed, hurried %d times", result.Verdict.Code, result.Failed, s.hurried)
	}
	if want := "podd: exit code 3; ending db\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
}

func TestDriveTimesOut(t *testing.T) {
	s := &stage{say: map[string]func(*reconcile.Report){"a": isRunning("c")}, stuck: make(chan struct{})}
	result, _, err := play(t, Options{Timeout: time.Millisecond}, s, wanted(t, manifestOf("a", never, "c"))...)
	if err != nil || result.Verdict.Code != exit.Timeout || s.hurried != 1 {
		t.Errorf("code %d, %v, hurried %d times", result.Verdict.Code, err, s.hurried)
	}
}

// TestDriveInterrupted: the first signal ends with grace, the second without,
// the third leaves what does not end.
func TestDriveInterrupted(t *testing.T) {
	tests := []struct {
		signals, hurried int
		stuck            bool // what is ended does not end by itself
		err              error
	}{
		{signals: 1},
		{signals: 2, hurried: 1, stuck: true},
	}
	for _, test := range tests {
		signals := make(chan os.Signal, 3)
		for range test.signals {
			signals <- os.Interrupt
		}
		s := &stage{say: map[string]func(*reconcile.Report){"a": isRunning("c")}}
		if test.stuck {
			s.stuck = make(chan struct{})
		}
		result, _, err := play(t, Options{Signals: signals}, s, wanted(t, manifestOf("a", never, "c"))...)
		if !errors.Is(err, test.err) || result.Verdict.Code != exit.Interrupted || s.hurried != test.hurried {
			t.Errorf("%d signals: code %d, %v, hurried %d times", test.signals, result.Verdict.Code, err, s.hurried)
		}
	}
}

// mule is a stage that does not hurry.
type mule struct{ *stage }

func (m mule) Hurry(context.Context) error { return nil }

func TestDriveLeaves(t *testing.T) {
	signals := make(chan os.Signal, 3)
	for range 3 {
		signals <- os.Interrupt
	}
	p := wanted(t, manifestOf("a", never, "c"))[0]
	s := &stage{stuck: make(chan struct{}), failed: make(chan struct{})}
	known := 0
	s.run = New(Options{
		Set: &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{p.Key: p}}, Order: []types.NamespacedName{p.Key},
		Stdout: NewStream("stdout", &bytes.Buffer{}), Stderr: NewStream("stderr", &bytes.Buffer{}),
		LogDir: func(*manifest.Pod) string { return t.TempDir() }, Signals: signals, OnResult: func(*Result) { known++ },
	})
	result, err := s.run.Drive(t.Context(), mule{s})
	if !errors.Is(err, errLeft) || result.Verdict.Code != exit.Interrupted || known != 1 {
		t.Errorf("code %d, %v, told %d times", result.Verdict.Code, err, known)
	}
}

// TestDriveBreaks: without a machine or an output there is no going on.
func TestDriveBreaks(t *testing.T) {
	s := &stage{failed: make(chan struct{}), err: errors.New("the runtime's socket is gone"), stuck: make(chan struct{})}
	close(s.failed)
	result, _, err := play(t, Options{}, s, wanted(t, manifestOf("a", never, "c"))...)
	if result.Verdict.Code != exit.Internal || !errors.Is(err, s.err) || result.Verdict.Why != s.err.Error() {
		t.Errorf("code %d, %v: %s", result.Verdict.Code, err, result.Verdict.Why)
	}
	stdout := NewStream("stdout", failing{})
	_ = stdout.write("c", "", nil, true)
	_ = stdout.Flush()
	result, _, err = play(t, Options{Stdout: stdout}, &stage{}, wanted(t, manifestOf("a", never, "c"))...)
	if result.Verdict.Code != exit.Internal || err != nil || result.Verdict.Why != "writing stdout: broken pipe" {
		t.Errorf("code %d, %v: %s", result.Verdict.Code, err, result.Verdict.Why)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestNames: a name that is there twice is told with its namespace.
func TestNames(t *testing.T) {
	other := strings.Replace(manifestOf("a", never, "c"), "{name: a}", "{name: a, namespace: x}", 1)
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}}
	var order []types.NamespacedName
	for _, p := range wanted(t, manifestOf("a", never, "c"), other, manifestOf("b", never, "c")) {
		set.Pods[p.Key] = p
		order = append(order, p.Key)
	}
	all := names(set, order)
	if got := all[order[0]] + " " + all[order[1]] + " " + all[order[2]]; got != "default/a x/a b" {
		t.Errorf("names are %s", got)
	}
}
