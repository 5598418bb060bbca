package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/render"
	"podd/server"
)

// TestFollowEndsWithItsContainer: also when that was restarted before the reader
// came to the end of its log.
func TestFollowEndsWithItsContainer(t *testing.T) {
	state := server.NewLatest(viewOf(up(podAt("one.yaml", 1, "one", "app"))))
	l := logReader{state: state, node: render.Node{LogsDir: t.TempDir()}}
	o, err := l.options(server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "app", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	again := up(podAt("one.yaml", 1, "one", "app"))
	again.Pod.Status.ContainerStatuses[0].ContainerID = "containerd://app2"
	next := viewOf(again)
	next.Revision++
	state.Publish(next)
	if over, _ := o.Ended(); !over {
		t.Error("it waits for the end of the next container")
	}
}

// writes counts how often is written, and ends the reading once all is there.
type writes struct {
	bytes.Buffer
	n    int
	want int // bytes
	end  func()
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	defer func() {
		if w.Len() >= w.want {
			w.end()
		}
	}()
	return w.Buffer.Write(p)
}

// TestFollowWritesMuchAtOnce: what is there already is not written line by line: each
// write is an answer's piece of its own.
func TestFollowWritesMuchAtOnce(t *testing.T) {
	const lines = 5000
	dir := t.TempDir()
	pod := up(podAt("one.yaml", 1, "one", "app"))
	l := logReader{state: server.NewLatest(viewOf(pod)), node: render.Node{LogsDir: dir}}
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
	w := &writes{want: len(want), end: cancel}
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
