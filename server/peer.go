package server

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PeerUID returns the user ID of the process at the other end of a Unix socket. It is the user ID
// with which the process connected to the socket or began to listen on it.
func PeerUID(c *net.UnixConn) (uint32, error) {
	cred, err := peerCredentials(c)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// PeerPID returns the PID of the process at the other end of a Unix socket. For a client, this is
// the process that listens on the socket.
func PeerPID(c *net.UnixConn) (int, error) {
	cred, err := peerCredentials(c)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// peerCredentials returns the credentials of the process at the other end of a Unix socket.
func peerCredentials(c *net.UnixConn) (*unix.Ucred, error) {
	conn, err := c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("reading the peer's credentials: %w", err)
	}
	var cred *unix.Ucred
	var sockoptErr error
	err = conn.Control(func(fd uintptr) {
		cred, sockoptErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = sockoptErr
	}
	if err != nil {
		return nil, fmt.Errorf("reading the peer's credentials: %w", err)
	}
	return cred, nil
}

// IsTrusted reports whether a user may control this process. It returns true for root and for the
// user of this process, because both can control the process in any case.
func IsTrusted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }
