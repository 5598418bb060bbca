package server

import (
	"container/list"
	"maps"
	"net"
	"slices"
	"sync"
)

// limited is ln with at most n connections open at a time, 64 for 0. One more
// has the oldest stranger's closed, or waits where there is none.
func limited(ln net.Listener, n int) *limitListener {
	if n == 0 {
		n = defaultConns
	}
	return &limitListener{
		Listener: ln, slots: make(chan struct{}, n), done: make(chan struct{}),
		left: make(chan struct{}, 1), open: map[*limitConn]bool{}, strangers: list.New(),
	}
}

type limitListener struct {
	net.Listener
	slots     chan struct{} // holds one element for every open connection
	done      chan struct{} // closed by Close
	closeOnce sync.Once
	left      chan struct{} // holds an element when a guest has become a stranger

	mu        sync.Mutex // guards all following fields, and those of limitConn
	open      map[*limitConn]bool
	strangers *list.List // *limitConn, the oldest first
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
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if err := l.room(); err != nil {
		c.Close()
		return nil, err
	}
	conn := &limitConn{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[conn] = true
	conn.stranger = l.strangers.PushBack(conn)
	return conn, nil
}

// room takes a slot, if need be from the oldest stranger, or from one that becomes
// a stranger while it waits.
func (l *limitListener) room() error {
	for {
		select {
		case l.slots <- struct{}{}:
			return nil
		default:
		}
		if old := l.oldest(); old != nil {
			old.Close()
			continue
		}
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-l.left:
		case <-l.done:
			return net.ErrClosed
		}
	}
}

// oldest is the stranger that came first; nil when there is none.
func (l *limitListener) oldest() *limitConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.strangers.Front(); e != nil {
		return e.Value.(*limitConn)
	}
	return nil
}

func (l *limitListener) release(c *limitConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	if c.stranger != nil {
		l.strangers.Remove(c.stranger)
		c.stranger = nil
	}
	<-l.slots
}

func (l *limitListener) Close() error {
	l.closeOnce.Do(func() { close(l.done) })
	return l.Listener.Close()
}
