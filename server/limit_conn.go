package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// writeTimeout is the time after which a connection fails if the client reads nothing of a
// response. The client's host may have become unreachable. The time is long because a user may
// pause the output on a terminal.
const writeTimeout = 5 * time.Minute

// A limitConn is a connection of a limitListener. It frees its slot when it is first closed.
type limitConn struct {
	net.Conn
	once       sync.Once
	listener   *limitListener
	list       *list.List    // listener.admittedConns or listener.unadmittedConns
	element    *list.Element // element of the connection in the field list
	admittedAt time.Time     // time of admission
	// clientCertificate is the client certificate of the newest request.
	clientCertificate atomic.Pointer[x509.Certificate]

	mu       sync.Mutex // guards deadline
	deadline time.Time  // write deadline that the server has set
}

func (c *limitConn) Close() error {
	defer c.once.Do(func() { c.listener.release(c) })
	return c.Conn.Close()
}

// setAdmitted changes whether c is admitted. The listener does not close an admitted connection to
// make room for a new connection. setAdmitted does nothing if c is closed.
func (c *limitConn) setAdmitted(isAdmitted bool) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	newList := c.listener.unadmittedConns
	if isAdmitted {
		newList = c.listener.admittedConns
	}
	if !c.listener.openConns[c] || c.list == newList {
		return
	}
	c.list.Remove(c.element)
	c.list, c.element, c.admittedAt = newList, newList.PushBack(c), time.Now()
	if !isAdmitted {
		select {
		case c.listener.unadmitSignal <- struct{}{}:
		default: // an earlier signal has not been received yet, and one signal is sufficient
		}
	}
}

// Write fails if the client reads nothing for writeTimeout.
func (c *limitConn) Write(p []byte) (int, error) {
	for sentBytes := 0; ; {
		if err := c.refreshDeadline(); err != nil {
			return sentBytes, err
		}
		part := p[sentBytes:min(len(p), sentBytes+maxChunk)]
		n, err := c.Conn.Write(part)
		if sentBytes += n; err != nil || sentBytes == len(p) {
			return sentBytes, err
		}
	}
}

// maxChunk is the number of bytes that even a slow client reads within
// writeTimeout.
const maxChunk = 256 << 10

func (c *limitConn) refreshDeadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	maxDeadline := time.Now().Add(writeTimeout)
	if !c.deadline.IsZero() && c.deadline.Before(maxDeadline) {
		maxDeadline = c.deadline
	}
	return c.Conn.SetWriteDeadline(maxDeadline)
}

// SetWriteDeadline implements net.Conn.
func (c *limitConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *limitConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

// connKey is the context key of a request's connection.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, unwrapTLS(c))
}

// unwrapTLS returns the connection below TLS.
func unwrapTLS(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// recordCertificate records the client certificate of r for CloseClients. It must
// be called before the certificate is verified.
func recordCertificate(r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*limitConn)
	if ok && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		c.clientCertificate.Store(r.TLS.PeerCertificates[0])
	}
}

// MarkAuthenticated marks the client of r as authenticated, so that its connection is not closed to
// make room for a new connection. It does nothing if r was not received by a Server.
func MarkAuthenticated(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitConn); ok {
		c.setAdmitted(true)
	}
}
