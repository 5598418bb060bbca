package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startAccepting opens a socket, and accepts and closes connections until stop is
// called.
func startAccepting(t *testing.T, dir string, log *slog.Logger) (stop func()) {
	t.Helper()
	ln, err := ListenSocket(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	return acceptAll(t, ln)
}

// acceptAll accepts and closes connections until stop is called.
func acceptAll(t *testing.T, ln net.Listener) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("Accept: %v", err)
				}
				return
			}
			c.Close()
		}
	}()
	stop = sync.OnceFunc(func() { ln.Close(); <-ended })
	t.Cleanup(stop)
	return stop
}

// awaitSocket waits until a connection to the socket in dir is accepted and the socket has
// its final mode, which is set shortly after connections are accepted.
func awaitSocket(t *testing.T, dir string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(5 * time.Minute); ; <-again.C {
		path := filepath.Join(dir, SocketName)
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
			if info, err := os.Stat(path); err == nil && info.Mode().Perm() == 0o600 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the socket in the directory was not created within the time limit: %v", err)
		}
	}
}

// awaitLog waits until log contains want.
func awaitLog(t *testing.T, log *syncBuffer, want string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(5 * time.Minute); ; <-again.C {
		got := log.String()
		if strings.Contains(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("log: got %q, want %q in it", got, want)
		}
	}
}

// TestListenRoot_Recreated checks that a socket below the root directory is created again if the
// socket or its directory is removed. Closing the listener removes the socket.
func TestListenRoot_Recreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "device-plugins", SocketName)
	ln, err := ListenRoot(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	stop := acceptAll(t, ln)
	for _, removed := range []string{path, filepath.Dir(path)} {
		awaitSocket(t, filepath.Dir(path))
		if err := os.RemoveAll(removed); err != nil {
			t.Fatal(err)
		}
	}
	awaitSocket(t, filepath.Dir(path))
	stop()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of the socket after Close: got error %v, want that it does not exist", err)
	}
}

func TestListenSocket_Recreated(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"directory removed": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
				t.Fatal(err)
			}
		},
		"socket removed": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, SocketName)); err != nil {
				t.Fatal(err)
			}
		},
		"socket replaced by a dead one": func(t *testing.T, dir string) {
			path := filepath.Join(dir, SocketName)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			dead, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			dead.(*net.UnixListener).SetUnlinkOnClose(false)
			dead.Close()
		},
		"directory replaced by one that others can enter": func(t *testing.T, dir string) {
			if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run", "podd")
			stop := startAccepting(t, dir, slog.New(slog.DiscardHandler))
			awaitSocket(t, dir)
			for range 2 {
				damage(t, dir)
				awaitSocket(t, dir)
			}
			for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, SocketName): 0o600 | os.ModeSocket} {
				if info, err := os.Stat(path); err != nil || info.Mode() != want {
					t.Errorf("%s: got %v, error %v; want mode %v", path, info, err, want)
				}
			}
			if _, err := ListenSocket(t.Context(), dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another podd uses the socket") {
				t.Errorf("second listener on the same path: got error %v, want \"another podd uses the socket\" in it", err)
			}
			stop()
			if _, err := os.Lstat(filepath.Join(dir, SocketName)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Stat of the socket after Close: got error %v, want that it does not exist", err)
			}
			listenSocket(t, dir) // the lock has been released
		})
	}
}

// swap atomically replaces dir by a directory with the socket of another podd, and
// returns its listener.
func swap(t *testing.T, dir string) net.Listener {
	t.Helper()
	aside, err := os.MkdirTemp(filepath.Dir(dir), "aside")
	if err != nil {
		t.Fatal(err)
	}
	other := listenSocket(t, aside)
	if err := unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	return other
}

// TestListenSocket_PathTaken checks that podd does not remove a file or another podd's socket at
// the path of its socket, but waits until the path is free.
func TestListenSocket_PathTaken(t *testing.T) {
	t.Run("another podd", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "podd")
		log := &syncBuffer{}
		stop := startAccepting(t, dir, slog.New(slog.NewTextHandler(log, nil)))
		other := swap(t, dir)
		mine, err := os.Lstat(filepath.Join(dir, SocketName))
		if err != nil {
			t.Fatal(err)
		}
		awaitLog(t, log, "another podd uses the socket")
		if now, err := os.Lstat(filepath.Join(dir, SocketName)); err != nil || !os.SameFile(mine, now) {
			t.Errorf("the socket of the other podd was replaced: %v", err)
		}
		other.Close()
		awaitSocket(t, dir)
		swap(t, dir)
		stop()
		c, err := net.Dial("unix", filepath.Join(dir, SocketName))
		if err != nil {
			t.Fatalf("Close removed the socket of the other podd: %v", err)
		}
		c.Close()
	})
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		path := filepath.Join(dir, SocketName)
		log := &syncBuffer{}
		startAccepting(t, dir, slog.New(slog.NewTextHandler(log, nil)))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(t, path)
		awaitLog(t, log, "the path exists and is not a socket; move it away")
		if err := os.Rename(path, path+".user"); err != nil {
			t.Fatal(err)
		}
		awaitSocket(t, dir)
	})
}
