package node

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// watchRouteEvents sends a value to wakeCh when the kernel reports a changed address or route. It
// returns when ctx is done, or with an error when events cannot be received.
func watchRouteEvents(ctx context.Context, wakeCh chan<- struct{}) error {
	socket, err := openRouteSocket()
	if err != nil {
		return fmt.Errorf("opening a netlink socket: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer func() {
		if stop() {
			socket.Close()
		}
	}()
	buffer := make([]byte, 1) // the rest of a longer message is dropped
	for {
		// Trigger a reading of the addresses: at first for changes before the socket was
		// open, then for each received event, and for events that the kernel has dropped
		// (ENOBUFS).
		select {
		case wakeCh <- struct{}{}:
		default:
		}
		if _, err := socket.Read(buffer); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("reading from a netlink socket: %w", err)
		}
	}
}

func openRouteSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	groups := uint32(unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}
