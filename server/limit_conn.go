package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// patience is how long a client may take nothing of what is sent to it, as one
// does that went without a word or stopped reading. Somebody may look for a while
// at what is on their screen.
const patience = 5 * time.Minute

// limitConn gives its slot back when it is closed for the first time.
type limitConn struct {
	net.Conn
	once  sync.Once
	of    *limitListener
	in    *list.List    // of's strangers or guests
	place *list.Element // there
	since time.Time     // when it became a guest

	mu       sync.Mutex // guards deadline
	deadline time.Time  // of writing, as it was set
}

func (c *limitConn) Close() error {
	defer c.once.Do(func() { c.of.release(c) })
	return c.Conn.Close()
}

// guest says whether c is one that strangers make room for. A closed one is none.
func (c *limitConn) guest(is bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	to := c.of.strangers
	if is {
		to = c.of.guests
	}
	if !c.of.open[c] || c.in == to {
		return
	}
	c.in.Remove(c.place)
	c.in, c.place, c.since = to, to.PushBack(c), time.Now()
	if !is {
		select {
		case c.of.left <- struct{}{}:
		default: // it is known already
		}
	}
}

// Write fails when the client takes nothing for as long as patience.
func (c *limitConn) Write(p []byte) (int, error) {
	for sent := 0; ; {
		if err := c.bound(); err != nil {
			return sent, err
		}
		part := p[sent:min(len(p), sent+mostAtOnce)]
		n, err := c.Conn.Write(part)
		if sent += n; err != nil || sent == len(p) {
			return sent, err
		}
	}
}

// mostAtOnce is what a client that takes anything at all takes within patience.
const mostAtOnce = 256 << 10

func (c *limitConn) bound() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest := time.Now().Add(patience)
	if !c.deadline.IsZero() && c.deadline.Before(latest) {
		latest = c.deadline
	}
	return c.Conn.SetWriteDeadline(latest)
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

// connKey is that of the *limitConn a request came by.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, plain(c))
}

// plain is c as it was accepted.
func plain(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// Admit says that whoever sent r is known, and so makes room for nobody. It does
// nothing for one that came by no Server.
func Admit(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitConn); ok {
		c.guest(true)
	}
}
