package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// socketCheckInterval is the interval at which a listener checks that its socket is still at its
// path.
const socketCheckInterval = time.Second

// ListenSocket opens podd's own socket, which only root can use, in the run directory. It creates
// the directory if necessary and restricts its mode to root. It replaces a socket that an earlier
// podd has not removed. A lock file in the same directory is locked until the listener is closed. By
// this lock, other processes recognize that a podd uses the socket. Connections of users other than
// root and the user of the process are closed at once.
//
// If the socket or its directory is removed or replaced while the listener is open, Accept
// creates both again within a second. If another podd uses the path, Accept waits until that
// podd exits. Accept must not be called concurrently.
func ListenSocket(ctx context.Context, runDir string, log *slog.Logger) (net.Listener, error) {
	return listen(ctx, log, func(ctx context.Context, heldLock *os.File) (*boundSocket, error) {
		return openSocket(ctx, runDir, heldLock)
	})
}

// ListenRoot opens a socket that only root can use. path must be below the root directory, which no
// other podd uses. It creates the socket's directory if necessary. If the socket or the directory
// is removed or replaced while the listener is open, Accept creates both again within a second.
// Accept must not be called concurrently.
func ListenRoot(ctx context.Context, path string, log *slog.Logger) (net.Listener, error) {
	return listen(ctx, log, func(ctx context.Context, _ *os.File) (*boundSocket, error) { return openRootSocket(ctx, path) })
}

// A socketListener listens on a socket, and creates the socket again if it is removed.
type socketListener struct {
	// open opens the socket. heldLock is the lock of the previous socket; nil if there is no
	// lock.
	open      func(ctx context.Context, heldLock *os.File) (*boundSocket, error)
	log       *slog.Logger
	lastCheck time.Time // time of the last check; used only by Accept
	lastErr   string    // error of the last check; "" after a success; used only by Accept

	mu       sync.Mutex // guards all following fields
	socket   *boundSocket
	isClosed bool
}

func listen(ctx context.Context, log *slog.Logger, open func(context.Context, *os.File) (*boundSocket, error)) (net.Listener, error) {
	s, err := open(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &socketListener{open: open, log: log, lastCheck: time.Now(), socket: s}, nil
}

// A boundSocket is a socket that is bound to a path, with the lock of that path.
type boundSocket struct {
	rootListener
	path     string
	lock     *os.File    // nil if the lock of the root directory protects the path
	fileInfo os.FileInfo // identifies the socket
}

// openSocket binds the socket in runDir. If heldLock is not nil and is still the lock of the path,
// openSocket uses heldLock. Otherwise it acquires the lock.
func openSocket(ctx context.Context, runDir string, heldLock *os.File) (*boundSocket, error) {
	path := filepath.Join(runDir, SocketName)
	if err := checkPathLength(path, "--run-dir"); err != nil {
		return nil, err
	}
	if err := PrepareRunDir(runDir); err != nil {
		return nil, err
	}
	lock := heldLock
	if heldLock == nil || !isFileAt(heldLock, lockPath(path)) {
		var err error
		if lock, err = lockSocket(path); err != nil {
			return nil, err
		}
	}
	s, err := bindSocket(ctx, path, lock)
	if err != nil && lock != heldLock {
		lock.Close()
	}
	return s, err
}

// openRootSocket binds path, which is below the root directory.
func openRootSocket(ctx context.Context, path string) (*boundSocket, error) {
	if err := checkPathLength(path, "--root-dir"); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("creating the directory of the socket: %w", err)
	}
	return bindSocket(ctx, path, nil)
}

// bindSocket binds path. The caller must hold the lock of path or of the root directory.
func bindSocket(ctx context.Context, path string, lock *os.File) (*boundSocket, error) {
	ln, err := bind(ctx, path)
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // do not remove the path on close, because another podd may have replaced the socket
	info, err := os.Lstat(path)
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	return &boundSocket{rootListener{ln}, path, lock, info}, nil
}

// isInPlace reports whether this socket is still at its path.
func (s *boundSocket) isInPlace() bool {
	info, err := os.Lstat(s.path)
	return err == nil && os.SameFile(info, s.fileInfo)
}

// remove closes the socket and its lock. It removes the file at the path unless another
// socket has replaced it.
func (s *boundSocket) remove() error {
	if s.isInPlace() {
		_ = os.Remove(s.path) // ignore errors, because the next podd replaces a remaining socket
	}
	if s.lock == nil {
		return s.Close()
	}
	return errors.Join(s.Close(), s.lock.Close())
}

// Accept implements net.Listener.
func (l *socketListener) Accept() (net.Conn, error) {
	for {
		if time.Since(l.lastCheck) >= socketCheckInterval {
			l.checkSocket()
		}
		s := l.currentSocket()
		if err := s.SetDeadline(l.lastCheck.Add(socketCheckInterval)); err != nil {
			return nil, err
		}
		c, err := s.Accept()
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return c, err
		}
	}
}

// Addr implements net.Listener.
func (l *socketListener) Addr() net.Addr { return l.currentSocket().Addr() }

// Close implements net.Listener. It also removes the socket, unless another socket has replaced it.
func (l *socketListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return net.ErrClosed
	}
	l.isClosed = true
	return l.socket.remove()
}

func (l *socketListener) currentSocket() *boundSocket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

// checkSocket binds a new socket if the socket of l is no longer at its path. If this fails, the next
// check tries again. checkSocket logs an error only if it differs from the error of the previous
// check.
func (l *socketListener) checkSocket() {
	l.lastCheck = time.Now()
	oldSocket := l.currentSocket()
	if oldSocket.isInPlace() {
		l.lastErr = ""
		return
	}
	newSocket, err := l.open(context.Background(), oldSocket.lock)
	if err != nil {
		if l.lastErr != err.Error() {
			l.lastErr = err.Error()
			l.log.Error("recreating the socket failed; trying again until it succeeds", "err", err)
		}
		return
	}
	if l.replace(newSocket) {
		l.lastErr = ""
		l.log.Warn("socket was removed or replaced; created a new one", "path", newSocket.path)
	}
}

// replace makes the listener accept connections of newSocket. If the listener was closed in the
// meantime, replace closes newSocket and returns false.
func (l *socketListener) replace(newSocket *boundSocket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		newSocket.remove()
		return false
	}
	oldSocket := l.socket
	l.socket = newSocket
	oldSocket.Close()
	if oldSocket.lock != newSocket.lock {
		oldSocket.lock.Close()
	}
	return true
}
