package server

import (
	"maps"
	"net"
	"slices"
	"sync"
)

// limited is ln with at most n connections open at a time, 64 for 0.
func limited(ln net.Listener, n int) *limitListener {
	if n == 0 {
		n = defaultConns
	}
	return &limitListener{Listener: ln, slots: make(chan struct{}, n), done: make(chan struct{}), open: map[*limitConn]bool{}}
}

type limitListener struct {
	net.Listener
	slots     chan struct{} // holds one element for every open connection
	done      chan struct{} // closed by Close
	closeOnce sync.Once

	mu   sync.Mutex // guards open
	open map[*limitConn]bool
}

// cut closes every connection that is open, also those that a handler took over.
func (l *limitListener) cut() {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	conn := &limitConn{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[conn] = true
	return conn, nil
}

func (l *limitListener) release(c *limitConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	<-l.slots
}

func (l *limitListener) Close() error {
	l.closeOnce.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// limitConn gives its slot back when it is closed for the first time.
type limitConn struct {
	net.Conn
	once sync.Once
	of   *limitListener
}

func (c *limitConn) Close() error {
	defer c.once.Do(func() { c.of.release(c) })
	return c.Conn.Close()
}
