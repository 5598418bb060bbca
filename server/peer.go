package server

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PeerUID is the user at the other end, as of when it connected or listened.
func PeerUID(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("asking who is at the other end: %w", err)
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, fmt.Errorf("asking who is at the other end: %w", err)
	}
	return cred.Uid, nil
}

// Trusted says whether a user may command this process: root, or the one it
// runs as, who can do all that it can anyway.
func Trusted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }
