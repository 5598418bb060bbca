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

	"podd/cmd/podd/internal/podrunner"
	"podd/manifest"
	"podd/reconcile/effect"
	"podd/runtime"
)

// A testOutput is a running outputCopier, the logs that it copies, and its output.
type testOutput struct {
	*outputCopier
	t        *testing.T
	dir      string        // parent of the log directories of the pods
	out, err *bytes.Buffer // copied stdout and stderr
	done     chan struct{} // closed when run has returned
}

// startOutput starts an outputCopier for pods and stops it at the end of the test.
func startOutput(t *testing.T, pods ...runPod) *testOutput {
	t.Helper()
	w := &testOutput{t: t, dir: t.TempDir(), out: &bytes.Buffer{}, err: &bytes.Buffer{}, done: make(chan struct{})}
	w.outputCopier = newOutputCopier(pods, newLineStream("stdout", w.out), newLineStream("stderr", w.err), func(p *manifest.Pod) string {
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

// log appends entries to the log file of an attempt of a container. The first attempt is 0. "o text"
// is a line of stdout, and "e text" a line of stderr. "O text" and "E text" are parts of a line that
// the next entry of the same stream continues.
func (w *testOutput) log(p runPod, container string, attempt int, entries ...string) {
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

// checkOutput waits until all logs are copied, and checks the copied stdout and stderr.
func (w *testOutput) checkOutput(stdout, stderr string) {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(5 * time.Minute):
		w.t.Fatal("the logs were not copied within 5m")
	}
	if w.out.String() != stdout || w.err.String() != stderr {
		w.t.Errorf("got stdout %q, stderr %q; want stdout %q, stderr %q", w.out, w.err, stdout, stderr)
	}
}

func newContainer(name string, attempt uint32, state runtime.ContainerState) runtime.Container {
	return runtime.Container{Name: name, Attempt: attempt, State: state}
}

// TestOutput_OneContainer checks that the output of a run with one container is copied unchanged. lastLines
// must return the lines of both streams.
func TestOutput_OneContainer(t *testing.T) {
	p := newPod(t, "job", never, "c")
	w := startOutput(t, p)
	w.log(p, "c", 0, "o one", "O tw", "e err", "o o", "O no end")
	w.update(newReport(p, setObserved(true, newContainer("c", 0, runtime.Running))))
	w.update(newReport(p, setObserved(true, newContainer("c", 0, runtime.Exited)), setFinished))
	w.checkOutput("one\ntwo\nno end", "err\n")
	if got := w.lastLines(&p, "c"); strings.Join(got, ",") != "one,tw,err,o,no end" {
		t.Errorf("lastLines: got %q, want the lines of stdout and stderr in the order of the log", got)
	}
}

// TestOutput_UnknownExitCode checks that the log of a container is copied to its end when its pod has
// finished, even if the runtime does not know the exit code of the container.
func TestOutput_UnknownExitCode(t *testing.T) {
	p := newPod(t, "job", never, "c")
	w := startOutput(t, p)
	w.log(p, "c", 0, "o one")
	w.update(newReport(p, setObserved(true, newContainer("c", 0, runtime.ExitCodeUnknown))))
	w.log(p, "c", 0, "o two")
	w.update(newReport(p, setObserved(true, newContainer("c", 0, runtime.ExitCodeUnknown)), setFinished))
	w.checkOutput("one\ntwo\n", "")
}

// TestOutput_SeveralContainers checks that the output of several containers consists of complete lines,
// each with a prefix. The logs of init containers, of all attempts, and of containers that no report
// contained must be copied.
func TestOutput_SeveralContainers(t *testing.T) {
	p, quick := newPod(t, "job", onFailure, "init:i", "c"), newPod(t, "quick", never, "c")
	w := startOutput(t, p, quick)
	w.log(p, "i", 0, "o init")
	w.log(p, "c", 0, "O no ")
	w.log(p, "c", 1, "O whole", "o  line")
	w.log(quick, "c", 0, "o without a report")
	w.update(newReport(p, setObserved(true, newContainer("c", 0, runtime.Exited), newContainer("i", 0, runtime.Exited))))
	w.update(newReport(p, setObserved(true, newContainer("c", 1, runtime.Exited)), setFinished))
	if err := w.drain(t.Context(), p.Desired.Key); err != nil {
		t.Fatal(err)
	}
	w.finish(quick.Desired.Key)
	<-w.done
	got := strings.Split(w.out.String(), "\n")
	want := map[string]bool{"job/i | init": true, "job/c | no ": true, "job/c | whole line": true, "quick/c | without a report": true, "": true}
	for _, line := range got {
		if !want[line] {
			t.Errorf("got unexpected line %q", line)
		}
		delete(want, line)
	}
	if len(want) > 0 {
		t.Errorf("got stdout %q, want it to contain the lines %v too", w.out, want)
	}
}

// TestOutput_Sidecar checks that the logs of a pod are copied until all containers of the pod have
// exited. The last container that exits is a sidecar.
func TestOutput_Sidecar(t *testing.T) {
	p := newPod(t, "job", never, "sidecar:s", "c")
	containers := []runtime.Container{newContainer("s", 0, runtime.Running), newContainer("c", 0, runtime.Exited)}
	w := startOutput(t, p)
	w.log(p, "c", 0, "o c")
	w.log(p, "s", 0, "o s")
	w.update(newReport(p, setObserved(true, containers...), setFinished))
	stopping := newReport(p, setObserved(true, containers[1]))
	stopping.Version = nil // the pod is being stopped, but a container may still be starting
	w.update(stopping)
	select {
	case <-w.done:
		t.Fatal("the output ended before the report that the sidecar has exited")
	default:
	}
	w.log(p, "s", 0, "o more")
	stopped := newReport(p, setObserved(false, newContainer("s", 0, runtime.Exited), containers[1]))
	stopped.Version = nil
	w.update(stopped)
	<-w.done
	if !strings.Contains(w.out.String(), "job/s | more\n") {
		t.Errorf("got stdout %q, want it to contain the last line of the sidecar, \"job/s | more\"", w.out)
	}
}

// A callCounter counts the calls of Remove and HandleStart.
type callCounter struct {
	effect.LogsAndCgroups
	removals, starts int
}

func (c *callCounter) Remove(context.Context, types.NamespacedName, types.UID) error {
	c.removals++
	return nil
}

func (c *callCounter) HandleStart(*manifest.Pod, string, string, uint32, uint32) error {
	c.starts++
	return nil
}

// TestLogRetainer_HandleStart checks that the start of a container neither removes the logs of earlier
// attempts, which may not be copied yet, nor creates links for log agents.
func TestLogRetainer_HandleStart(t *testing.T) {
	c := &callCounter{}
	var l effect.LogsAndCgroups = logRetainer{c, nil}
	if err := l.HandleStart(newPod(t, "job", never, "c").Desired, "c", "id", 3, 3); err != nil || c.starts != 0 {
		t.Errorf("got error %v, %d calls of HandleStart; want no error, no call", err, c.starts)
	}
}

// TestLogRetainer_Remove checks that Remove waits until the logs are copied, and then removes them.
func TestLogRetainer_Remove(t *testing.T) {
	p := newPod(t, "job", never, "c")
	w := startOutput(t, p)
	w.log(p, "c", 0, "o complete")
	c := &callCounter{}
	k := logRetainer{c, w.outputCopier}
	if err := k.Remove(t.Context(), p.Desired.Key, p.Desired.UID); err != nil || c.removals != 1 {
		t.Errorf("got error %v, %d removals; want no error, 1 removal", err, c.removals)
	}
	w.checkOutput("complete\n", "")
}

// TestLogRetainer_Abandoned checks logs that have not been copied. Remove must not remove the logs before
// the copying is abandoned.
func TestLogRetainer_Abandoned(t *testing.T) {
	p := newPod(t, "job", never, "c")
	o := newOutputCopier([]runPod{p}, nil, nil, func(*manifest.Pod) string { return "" }) // nothing calls run, so nothing is copied
	c := &callCounter{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := logRetainer{c, o}
	if err := k.Remove(ctx, p.Desired.Key, "u"); err == nil || c.removals != 0 {
		t.Errorf("canceled context: got error %v, %d removals; want an error, 0 removals", err, c.removals)
	}
	o.abandon()
	if err := k.Remove(t.Context(), p.Desired.Key, "u"); err != nil || c.removals != 1 {
		t.Errorf("after abandon: got error %v, %d removals; want no error, 1 removal", err, c.removals)
	}
}

// TestHasCopiedEarlierFiles checks that hasCopiedEarlierFiles returns true only while the newest file of
// a log is being copied.
func TestHasCopiedEarlierFiles(t *testing.T) {
	p := newPod(t, "job", never, "main")
	w := startOutput(t, p)
	newest := podrunner.ContainerLog{Pod: p.Desired.Key, Container: "main"}
	w.log(p, "main", 0, "o one")
	if w.hasCopiedEarlierFiles(newest) {
		t.Error("before copying has begun: got true, want false")
	}
	w.pods[p.Desired.Key].copies["main"].begin()
	for deadline := time.Now().Add(5 * time.Minute); !w.hasCopiedEarlierFiles(newest); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("got hasCopiedEarlierFiles false during 5m of copying, want true")
		}
	}
	later := newest
	later.Attempt = 1
	for _, l := range []podrunner.ContainerLog{later, {Pod: p.Desired.Key, Container: "none"}, {Container: "main"}} {
		if w.hasCopiedEarlierFiles(l) {
			t.Errorf("hasCopiedEarlierFiles(%+v): got true, want false", l)
		}
	}
}
