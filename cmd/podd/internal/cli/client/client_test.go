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

// TestConnect_KilledInCheckout checks the error for a podd of make run that was killed.
func TestConnect_KilledInCheckout(t *testing.T) {
	checkout := poddtest.ShortDir(t)
	t.Chdir(checkout)
	if err := os.MkdirAll(checkoutRunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(checkoutRunDir, server.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	const want = "podd is not running (connection refused at .run/run/podd.sock); start it with: make run"
	if _, err := firstReachable(t.Context(), New(checkoutRunDir), New(poddtest.ShortDir(t))); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	f := poddtest.Serve(t, poddtest.ViewOf())
	if p, err := firstReachable(t.Context(), New(checkoutRunDir), New(f.Dir)); err != nil || p.socket != New(f.Dir).socket {
		t.Errorf("beside another: %v", err)
	}
}

// TestWatch_PoddEnds checks the error if podd ends during a watch.
func TestWatch_PoddEnds(t *testing.T) {
	f := &poddtest.Podd{Latest: server.NewLatest(poddtest.ViewOf(poddtest.Started(poddtest.PodAt("a.yaml", 1, "a", "app")))), Dir: poddtest.ShortDir(t)}
	stop := f.Start(t)
	p := New(f.Dir)
	err := p.Watch(t.Context(), func(*server.View) (bool, error) {
		go stop() // the cleanup of serve waits for it
		return false, nil
	})
	if !errors.Is(err, ErrEnded) {
		t.Errorf("watch ended with %v", err)
	}
}

func TestConnect_NoPermission(t *testing.T) {
	dir := poddtest.ShortDir(t)
	p := New(dir)
	err := p.connectionError(t.Context(), &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", os.ErrPermission)})
	if err == nil || !strings.HasSuffix(err.Error(), "only root is allowed to, try sudo") {
		t.Errorf("%v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestLogs_FullDisk checks that an error of the output is not taken for one of podd.
func TestLogs_FullDisk(t *testing.T) {
	f := poddtest.Serve(t, poddtest.ViewOf(poddtest.Started(poddtest.PodAt("one.yaml", 1, "one", "app"))))
	f.OnLogs = func(_ context.Context, _ server.LogRequest, w io.Writer) error {
		_, err := io.WriteString(w, "begun")
		return err
	}
	err := New(f.Dir).Logs(t.Context(), server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "app"}, fullDisk{})
	if err == nil || err.Error() != "writing the log: no space" {
		t.Errorf("to a full disk: %v", err)
	}
}
