package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podd/server/servertest"
)

func listenSocket(t *testing.T, dir string) net.Listener {
	t.Helper()
	ln, err := ListenSocket(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func TestListenSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "podd")
	ln := listenSocket(t, dir)
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, SocketName): 0o600 | os.ModeSocket} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s: got mode %v, want %v", path, info.Mode(), want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&Server{Handler: newFakeDaemon("web-n1").handler(), AllowsStreams: true}).Serve(ctx, servertest.WithoutDeadlines(ln))
	}()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, SocketName))
	}}}
	resp, err := client.Get("http://podd/v1/version")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve: got error %v, want nil after its context was canceled", err)
	}
	if _, err := os.Stat(filepath.Join(dir, SocketName)); !os.IsNotExist(err) {
		t.Errorf("Stat of the socket after Serve returned: got error %v, want that it does not exist", err)
	}
	listenSocket(t, dir) // the lock has been released
}

func TestListenSocket_StaleSocket(t *testing.T) {
	dir := t.TempDir()
	old, err := net.Listen("unix", filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	old.Close()
	listenSocket(t, dir)
}

func TestListenSocket_Errors(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string) string // returns the run directory
		want    string
	}{
		{"long path", func(t *testing.T, dir string) string { return filepath.Join(dir, strings.Repeat("x", 100)) },
			"bytes, but the path of a socket can have only 107; use a shorter --run-dir"},
		{"running podd", func(t *testing.T, dir string) string { listenSocket(t, dir); return dir },
			"another podd uses the socket"},
		{"not a socket", func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, SocketName))
			return dir
		}, "the path exists and is not a socket"},
		{"link", func(t *testing.T, dir string) string {
			link := filepath.Join(dir, "link")
			if err := os.Symlink(t.TempDir(), link); err != nil {
				t.Fatal(err)
			}
			return link
		}, "opening the run directory, which must not be a symbolic link"},
		{"shared directory", func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "sshd.pid"))
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "(mode 0755) and it contains files that are not podd's (sshd.pid)"},
		{"lock is a symbolic link", func(t *testing.T, dir string) string {
			if err := os.Symlink("/dev/null", filepath.Join(dir, SocketName+".lock")); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "opening the lock file of the socket"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "podd")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			ln, err := ListenSocket(t.Context(), tt.prepare(t, dir), slog.New(slog.DiscardHandler))
			if err == nil {
				ln.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestListenSocket_RestrictsMode(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	listenSocket(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got mode %v, error %v; want 0700", info.Mode(), err)
	}
}

// TestListenSocket_PeerUID checks that a connection of another user is closed without a response. It
// checks this only if it runs as root, because only root can change its user.
func TestListenSocket_PeerUID(t *testing.T) {
	dir := t.TempDir()
	ln := listenSocket(t, dir)
	path := filepath.Join(dir, SocketName)
	accepted := make(chan uint32, 1)
	go func() {
		defer close(accepted)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			uid, err := PeerUID(c.(*net.UnixConn))
			if err != nil {
				t.Error(err)
			}
			c.Close()
			accepted <- uid
		}
	}()
	if os.Geteuid() == 0 {
		for _, p := range []string{filepath.Dir(dir), dir, path} {
			if err := os.Chmod(p, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := dialAs(path, 65534); n != 0 || err != io.EOF {
			t.Errorf("as the user nobody: read %d bytes, error %v; want EOF", n, err)
		}
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid := <-accepted; int(uid) != os.Geteuid() {
		t.Errorf("accepted uid %d, want %d", uid, os.Geteuid())
	}
	ln.Close()
	<-accepted
}

// init keeps the main thread for the main goroutine: dialAs changes the user of its
// thread for good, and the main thread does not end with a goroutine.
func init() { runtime.LockOSThread() }

// dialAs connects and reads as user uid, from a separate thread.
func dialAs(path string, uid int) (n int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); no != 0 {
			err = no
			return
		}
		var c net.Conn
		if c, err = net.Dial("unix", path); err != nil {
			return
		}
		defer c.Close()
		n, err = c.Read(make([]byte, 1))
	}()
	<-done
	return n, err
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
