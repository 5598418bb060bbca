package runonce

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/runtime"
)

// writing is an output with the logs it reads.
type writing struct {
	*output
	t        *testing.T
	dir      string
	out, err *bytes.Buffer
	done     chan struct{} // run has returned
}

func newWriting(t *testing.T, pods ...Pod) *writing {
	t.Helper()
	w := &writing{t: t, dir: t.TempDir(), out: &bytes.Buffer{}, err: &bytes.Buffer{}, done: make(chan struct{})}
	w.output = newOutput(pods, NewStream("stdout", w.out), NewStream("stderr", w.err), func(p *manifest.Pod) string {
		return filepath.Join(w.dir, p.Key.Name)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-w.done })
	return w
}

// log adds entries, "o text", "e text" or "O text" for a piece without an end,
// to the log of a container's attempt.
func (w *writing) log(p Pod, container string, attempt int, entries ...string) {
	w.t.Helper()
	dir := filepath.Join(w.dir, p.Desired.Key.Name, container)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%d.log", attempt)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	for _, e := range entries {
		kind, text, _ := strings.Cut(e, " ")
		stream, tag := "stdout", "F"
		if strings.ToLower(kind) == "e" {
			stream = "stderr"
		}
		if kind == "O" || kind == "E" {
			tag = "P"
		}
		fmt.Fprintf(f, "2026-03-01T14:02:00.000000000Z %s %s %s\n", stream, tag, text)
	}
}

// ends waits until everything was copied.
func (w *writing) ends(stdout, stderr string) {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(30 * time.Second):
		w.t.Fatal("the output does not end")
	}
	if w.out.String() != stdout || w.err.String() != stderr {
		w.t.Errorf("stdout %q, want %q; stderr %q, want %q", w.out, stdout, w.err, stderr)
	}
}

func observedContainer(name string, attempt uint32, state runtime.ContainerState) runtime.Container {
	return runtime.Container{Name: name, Attempt: attempt, State: state}
}

// TestOutputOfOne passes through as it was written.
func TestOutputOfOne(t *testing.T) {
	p := podOf(t, "job", never, "c")
	w := newWriting(t, p)
	w.log(p, "c", 0, "o one", "O tw", "e err", "o o", "O no end")
	w.update(report(p, observed(true, observedContainer("c", 0, runtime.Running))))
	w.update(report(p, observed(true, observedContainer("c", 0, runtime.Exited)), isFinished))
	w.ends("one\ntwo\nno end", "err\n")
	if got := w.lastLines(&p, "c"); strings.Join(got, ",") != "one,tw,err,o,no end" {
		t.Errorf("last lines %q", got)
	}
}

// TestOutputOfUnknownExit: the log of a container whose exit code is not known is read
// to its end once the pod has finished for another reason.
func TestOutputOfUnknownExit(t *testing.T) {
	p := podOf(t, "job", never, "c")
	w := newWriting(t, p)
	w.log(p, "c", 0, "o one")
	w.update(report(p, observed(true, observedContainer("c", 0, runtime.ExitUnknown))))
	w.log(p, "c", 0, "o two")
	w.update(report(p, observed(true, observedContainer("c", 0, runtime.ExitUnknown)), isFinished))
	w.ends("one\ntwo\n", "")
}

// TestOutputOfSeveral has prefixes and whole lines, init containers and all
// attempts, and what no report has shown.
func TestOutputOfSeveral(t *testing.T) {
	p, quick := podOf(t, "job", onFailure, "init:i", "c"), podOf(t, "quick", never, "c")
	w := newWriting(t, p, quick)
	w.log(p, "i", 0, "o init")
	w.log(p, "c", 0, "O no ")
	w.log(p, "c", 1, "O whole", "o  line")
	w.log(quick, "c", 0, "o seen by nobody")
	w.update(report(p, observed(true, observedContainer("c", 0, runtime.Exited), observedContainer("i", 0, runtime.Exited))))
	w.update(report(p, observed(true, observedContainer("c", 1, runtime.Exited)), isFinished))
	if err := w.drain(t.Context(), p.Desired.Key); err != nil {
		t.Fatal(err)
	}
	w.finish(quick.Desired.Key)
	<-w.done
	got := strings.Split(w.out.String(), "\n")
	want := map[string]bool{"job/i | init": true, "job/c | no ": true, "job/c | whole line": true, "quick/c | seen by nobody": true, "": true}
	for _, line := range got {
		if !want[line] {
			t.Errorf("a line is %q", line)
		}
		delete(want, line)
	}
	if len(want) > 0 {
		t.Errorf("in %q is not %v", w.out, want)
	}
}

// TestOutputGoesOn while anything of the pod may write.
func TestOutputGoesOn(t *testing.T) {
	p := podOf(t, "job", never, "sidecar:s", "c")
	ended := []runtime.Container{observedContainer("s", 0, runtime.Running), observedContainer("c", 0, runtime.Exited)}
	w := newWriting(t, p)
	w.log(p, "c", 0, "o c")
	w.log(p, "s", 0, "o s")
	w.update(report(p, observed(true, ended...), isFinished))
	gone := report(p, observed(true, ended[1]))
	gone.Version = nil // ended, with a start that may still be under way
	w.update(gone)
	select {
	case <-w.done:
		t.Fatal("ended while a sidecar ran")
	default:
	}
	w.log(p, "s", 0, "o more")
	gone = report(p, observed(false, observedContainer("s", 0, runtime.Exited), ended[1]))
	gone.Version = nil
	w.update(gone)
	<-w.done
	if !strings.Contains(w.out.String(), "job/s | more\n") {
		t.Errorf("stdout %q", w.out)
	}
}

// removals are Leftovers that only count.
type removals struct {
	effect.Leftovers
	n int
}

func (r *removals) Remove(context.Context, types.NamespacedName, types.UID) error {
	r.n++
	return nil
}

// TestKeeperCopiesFirst: logs go after they were copied, or when nobody waits
// for them any longer.
func TestKeeperCopiesFirst(t *testing.T) {
	p := podOf(t, "job", never, "c")
	w := newWriting(t, p)
	w.log(p, "c", 0, "o all of it")
	r := &removals{}
	k := logRetainer{r, w.output}
	if err := k.Remove(t.Context(), p.Desired.Key, p.Desired.UID); err != nil || r.n != 1 {
		t.Errorf("Remove: %v, %d times", err, r.n)
	}
	w.ends("all of it\n", "")
}

func TestKeeperGivesUp(t *testing.T) {
	p := podOf(t, "job", never, "c")
	o := newOutput([]Pod{p}, nil, nil, func(*manifest.Pod) string { return "" }) // nobody runs it
	r := &removals{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := logRetainer{r, o}
	if err := k.Remove(ctx, p.Desired.Key, "u"); err == nil || r.n != 0 {
		t.Errorf("Remove with a context that is done: %v, %d times", err, r.n)
	}
	o.abandon()
	if err := k.Remove(t.Context(), p.Desired.Key, "u"); err != nil || r.n != 1 {
		t.Errorf("Remove of what is abandoned: %v, %d times", err, r.n)
	}
}
