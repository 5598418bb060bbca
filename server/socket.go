package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// SocketName is the name of the socket in the run directory.
const SocketName = "podd.sock"

// maxSocketPath is the maximum length of the path of a Unix socket: the length of
// sockaddr_un.sun_path minus the terminating zero byte.
const maxSocketPath = 107

// checkPathLength returns an error if path is too long for a socket. flag is the flag whose value
// determines path; the error recommends a shorter value.
func checkPathLength(path, flag string) error {
	if len(path) <= maxSocketPath {
		return nil
	}
	return fmt.Errorf("listening on %s: the path has %d bytes, but the path of a socket can have only %d; use a shorter %s", path, len(path), maxSocketPath, flag)
}

// lockSocket locks the lock file of the socket path. Only the process that holds the lock may bind
// path. The lock is released when the returned file is closed or the process exits.
func lockSocket(path string) (*os.File, error) {
	name := lockPath(path)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file of the socket: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && !isFileAt(f, name) {
		err = errors.New("the lock file was removed while podd locked it; start podd again")
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("listening on %s: another podd uses the socket; stop that podd, or use another --run-dir", path)
	}
	return nil, fmt.Errorf("locking %s: %w", name, err)
}

func lockPath(socket string) string { return socket + ".lock" }

// isFileAt reports whether the file at path is f.
func isFileAt(f *os.File, path string) bool {
	openInfo, err := f.Stat()
	if err != nil {
		return false
	}
	pathInfo, err := os.Lstat(path)
	return err == nil && os.SameFile(openInfo, pathInfo)
}

// bind listens on path and replaces the socket of a process that has exited. The
// caller must hold the lock.
func bind(ctx context.Context, path string) (*net.UnixListener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("checking for an old socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listening on %s: the path exists and is not a socket; move it away", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the socket of a podd that has exited: %w", err)
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, syscallCause(err))
	}
	// Before this call, only the mode of the directory protects the socket.
	if err := os.Chmod(path, 0o600); err != nil {
		ln.Close()
		return nil, fmt.Errorf("restricting the mode of the socket: %w", err)
	}
	return ln.(*net.UnixListener), nil
}

// A rootListener accepts only connections of trusted users (IsTrusted).
type rootListener struct{ *net.UnixListener }

// Accept implements net.Listener.
func (l *rootListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := PeerUID(c); err == nil && IsTrusted(uid) {
			return c, nil
		}
		c.Close()
	}
}
