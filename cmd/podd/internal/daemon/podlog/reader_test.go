package podlog

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// TestFollow_EndsWithContainer checks that following a log ends when its container has
// ended, even if the container was restarted before the reader reached the end of the log.
func TestFollow_EndsWithContainer(t *testing.T) {
	state := server.NewLatestView(poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app"))))
	l := NewReader(state, t.TempDir(), nil)
	o, err := l.options(server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "app", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	restarted := poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app"))
	restarted.Pod.Status.ContainerStatuses[0].ContainerID = "containerd://app2"
	next := poddtest.NewView(restarted)
	next.Revision++
	state.Publish(next)
	if ended, _ := o.HasExited(); !ended {
		t.Error("HasExited of a container that was restarted: got false, want true")
	}
}

// A writeCounter counts writes, and calls done when all bytes have arrived.
type writeCounter struct {
	bytes.Buffer
	n    int // number of writes
	want int // expected number of bytes
	done func()
}

func (w *writeCounter) Write(p []byte) (int, error) {
	w.n++
	defer func() {
		if w.Len() >= w.want {
			w.done()
		}
	}()
	return w.Buffer.Write(p)
}

// TestFollow_BuffersLines checks that existing lines are not written one by one, because
// each write is an HTTP chunk.
func TestFollow_BuffersLines(t *testing.T) {
	const lines = 5000
	dir := t.TempDir()
	pod := poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app"))
	l := NewReader(server.NewLatestView(poddtest.NewView(pod)), dir, nil)
	req := server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "app", Follow: true, Tail: -1}
	o, err := l.options(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "app"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("2026-03-01T14:02:11.5Z stdout F a line\n", lines) + "2026-03-01T14:02:11.5Z stdout P the end"
	if err := os.WriteFile(filepath.Join(o.Dir, "app", "0.log"), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	want := strings.Repeat("a line\n", lines)
	w := &writeCounter{want: len(want), done: cancel}
	if err := l.Logs(ctx, req, w); ctx.Err() == nil {
		t.Fatalf("Logs returned before it had written the log: %v", err)
	}
	if got := w.String(); got != want+"the end" {
		t.Errorf("got a text of %d bytes, want the %d bytes of all lines", len(got), len(want)+len("the end"))
	}
	if w.n > 10 {
		t.Errorf("got %d writes for %d lines, want at most 10", w.n, lines)
	}
}
