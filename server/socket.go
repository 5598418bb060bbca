package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SocketName is the name of the socket in the run directory.
const SocketName = "podd.sock"

// maxSocketPath is what fits into sockaddr_un with its final zero byte.
const maxSocketPath = 107

// ListenSocket opens the root-only socket in the run directory, which it makes
// where missing and closes to others. A socket that a dead podd left is
// replaced; a lock beside it, held until the listener is closed, tells that
// from a living one. Connections of other users than root, or than the one
// podd runs as, are closed unheard.
func ListenSocket(ctx context.Context, runDir string) (net.Listener, error) {
	path := filepath.Join(runDir, SocketName)
	if err := checkLength(path, "--run-dir"); err != nil {
		return nil, err
	}
	if err := prepareRunDir(runDir); err != nil {
		return nil, err
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	ln, err := bind(ctx, path)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &socketListener{rootListener: rootListener{ln}, lock: lock}, nil
}

// ListenRoot opens a root-only socket below the root directory, which nobody else
// has, in a directory that it makes where missing.
func ListenRoot(ctx context.Context, path string) (net.Listener, error) {
	if err := checkLength(path, "--root-dir"); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the directory of a socket: %w", err)
	}
	ln, err := bind(ctx, path)
	if err != nil {
		return nil, err
	}
	return &rootListener{ln}, nil
}

func checkLength(path, flag string) error {
	if len(path) <= maxSocketPath {
		return nil
	}
	return fmt.Errorf("listening on %s: the path has %d bytes and a socket's may have %d; choose a shorter %s", path, len(path), maxSocketPath, flag)
}

// lockSocket makes this process the one that may bind path. The lock ends with
// the file, so also with the process.
func lockSocket(path string) (*os.File, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the socket: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("listening on %s: another podd does; end it, or give this one its own --run-dir", path)
	}
	return nil, fmt.Errorf("locking %s: %w", name, err)
}

// bind listens on path in place of a dead socket. The caller has the lock.
func bind(ctx context.Context, path string) (*net.UnixListener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("looking for an old socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listening on %s: something that is no socket has this name; move it away", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the socket of a podd that is gone: %w", err)
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, cause(err))
	}
	// Until here the directory alone keeps others out.
	if err := os.Chmod(path, 0o600); err != nil {
		ln.Close()
		return nil, fmt.Errorf("closing the socket to others: %w", err)
	}
	return ln.(*net.UnixListener), nil
}

// rootListener accepts only root, and removes the socket when it is closed.
type rootListener struct{ *net.UnixListener }

// socketListener holds the lock until it is closed.
type socketListener struct {
	rootListener
	lock *os.File
}

func (l *rootListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := PeerUID(c); err == nil && Trusted(uid) {
			return c, nil
		}
		c.Close()
	}
}

// Close also removes the socket.
func (l *socketListener) Close() error {
	return errors.Join(l.UnixListener.Close(), l.lock.Close())
}
