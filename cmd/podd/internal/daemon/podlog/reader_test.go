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

// TestFollow_EndsWithContainer checks that following ends with its container, also if
// that was restarted before the reader reached the end of the log.
func TestFollow_EndsWithContainer(t *testing.T) {
	state := server.NewLatest(poddtest.ViewOf(poddtest.Started(poddtest.PodAt("one.yaml", 1, "one", "app"))))
	l := NewReader(state, t.TempDir(), nil)
	o, err := l.options(server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "app", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	again := poddtest.Started(poddtest.PodAt("one.yaml", 1, "one", "app"))
	again.Pod.Status.ContainerStatuses[0].ContainerID = "containerd://app2"
	next := poddtest.ViewOf(again)
	next.Revision++
	state.Publish(next)
	if over, _ := o.Ended(); !over {
		t.Error("it waits for the end of the next container")
	}
}

// writeCounter counts writes, and stops the reader when all bytes have arrived.
type writeCounter struct {
	bytes.Buffer
	n    int
	want int // bytes
	end  func()
}

func (w *writeCounter) Write(p []byte) (int, error) {
	w.n++
	defer func() {
		if w.Len() >= w.want {
			w.end()
		}
	}()
	return w.Buffer.Write(p)
}

// TestFollow_BuffersLines checks that existing lines are not written one by one, because
// each write is an HTTP chunk.
func TestFollow_BuffersLines(t *testing.T) {
	const lines = 5000
	dir := t.TempDir()
	pod := poddtest.Started(poddtest.PodAt("one.yaml", 1, "one", "app"))
	l := NewReader(server.NewLatest(poddtest.ViewOf(pod)), dir, nil)
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
	w := &writeCounter{want: len(want), end: cancel}
	if err := l.Logs(ctx, req, w); ctx.Err() == nil {
		t.Fatal(err)
	}
	if got := w.String(); got != want+"the end" {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if w.n > 10 {
		t.Errorf("%d lines in %d writes", lines, w.n)
	}
}
