package client

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// TestConnect_NotRunningInCheckout checks the error if the podd that "make run" started in this
// checkout was stopped or killed.
func TestConnect_NotRunningInCheckout(t *testing.T) {
	checkout, second := poddtest.ShortDir(t), New(poddtest.ShortDir(t))
	t.Chdir(checkout)
	if p, err := firstReachable(t.Context(), New(checkoutRunDir), second); err == nil || p != second {
		t.Errorf("before the first make run, while no podd runs: got client %v, error %v; want the second client and an error", p, err)
	}
	if err := os.MkdirAll(checkoutRunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	const stopped = "podd is not running (no socket at .run/run/podd.sock); start it with: make run"
	if _, err := firstReachable(t.Context(), New(checkoutRunDir), second); err == nil || err.Error() != stopped {
		t.Errorf("after a stop: got error %v, want %q", err, stopped)
	}
	ln, err := net.Listen("unix", filepath.Join(checkoutRunDir, server.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	const want = "podd is not running (connection refused at .run/run/podd.sock); start it with: make run"
	if _, err := firstReachable(t.Context(), New(checkoutRunDir), second); err == nil || err.Error() != want {
		t.Errorf("after a kill, which leaves the socket: got error %v, want %q", err, want)
	}
	f := poddtest.Serve(t, poddtest.NewView())
	if p, err := firstReachable(t.Context(), New(checkoutRunDir), New(f.Dir)); err != nil || p.socket != New(f.Dir).socket {
		t.Errorf("while the podd of another run directory runs: got client %v, error %v; want the client of that podd", p, err)
	}
}

// TestWatch_PoddStops checks the error of WatchViews if podd stops during the watch.
func TestWatch_PoddStops(t *testing.T) {
	f := &poddtest.Podd{LatestView: server.NewLatestView(poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app")))), Dir: poddtest.ShortDir(t)}
	stop := f.Start(t)
	p := New(f.Dir)
	err := p.WatchViews(t.Context(), func(*server.View) (bool, error) {
		go stop() // in another goroutine, because stop waits until this request has ended
		return false, nil
	})
	if !errors.Is(err, ErrStreamEnded) {
		t.Errorf("got error %v, want %v", err, ErrStreamEnded)
	}
}

// TestConnect_NoPermission checks that the error mentions sudo if the user may not open the socket.
func TestConnect_NoPermission(t *testing.T) {
	dir := poddtest.ShortDir(t)
	p := New(dir)
	err := p.connectionError(t.Context(), &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", os.ErrPermission)})
	if err == nil || !strings.HasSuffix(err.Error(), "only root may connect, try sudo") {
		t.Errorf("got error %v, want one that ends in \"only root may connect, try sudo\"", err)
	}
}

// A failingWriter returns an error for each write.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestCopyLog_WriteError checks the error of CopyLog if the output cannot be written. It must not look
// like an error of podd.
func TestCopyLog_WriteError(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app"))))
	f.OnLogs = func(_ context.Context, _ server.LogRequest, w io.Writer) error {
		_, err := io.WriteString(w, "begun")
		return err
	}
	err := New(f.Dir).CopyLog(t.Context(), server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "app"}, failingWriter{})
	if err == nil || err.Error() != "writing the log: no space" {
		t.Errorf("got error %v, want \"writing the log: no space\"", err)
	}
}
