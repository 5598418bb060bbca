// Package servertest provides a listener for tests that start a server.
package servertest

import (
	"net"
	"time"
)

// WithoutDeadlines returns a listener that ignores the deadlines of its connections. A test needs it
// if it uses real connections and does not check a time limit, because a busy machine may exceed the
// time limit of a request.
func WithoutDeadlines(ln net.Listener) net.Listener { return patientListener{ln} }

type patientListener struct{ net.Listener }

// Accept implements net.Listener.
func (l patientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return patientConn{c}, nil
}

type patientConn struct{ net.Conn }

// SetDeadline implements net.Conn.
func (c patientConn) SetDeadline(t time.Time) error { return c.Conn.SetDeadline(onlyInterrupt(t)) }

// SetReadDeadline implements net.Conn.
func (c patientConn) SetReadDeadline(t time.Time) error {
	return c.Conn.SetReadDeadline(onlyInterrupt(t))
}

// SetWriteDeadline implements net.Conn.
func (c patientConn) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(onlyInterrupt(t))
}

// onlyInterrupt returns t if t is the time with which net/http interrupts a read, which is one second
// after the Unix epoch. Otherwise it returns the zero time, which means no deadline.
func onlyInterrupt(t time.Time) time.Time {
	if t.Equal(time.Unix(1, 0)) {
		return t
	}
	return time.Time{}
}
