package server

import (
	"container/list"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// limited is ln with at most n connections open at a time, 64 for 0. One more
// has the oldest stranger's closed, or waits where there is none; with brief set,
// only until a guest has been one for gateSlow.
func limited(ln net.Listener, n int) *limitListener {
	if n == 0 {
		n = defaultConns
	}
	return &limitListener{
		Listener: ln, slots: make(chan struct{}, n), done: make(chan struct{}),
		left: make(chan struct{}, 1), open: map[*limitConn]bool{},
		strangers: list.New(), guests: list.New(),
	}
}

type limitListener struct {
	net.Listener
	brief     bool          // guests stay for gateSlow when others wait
	slots     chan struct{} // holds one element for every open connection
	done      chan struct{} // closed by Close
	closeOnce sync.Once
	left      chan struct{} // holds an element when a guest has become a stranger

	mu        sync.Mutex // guards all following fields, and those of limitConn
	open      map[*limitConn]bool
	strangers *list.List // *limitConn, the oldest first
	guests    *list.List // the same, by when they became guests
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
	conn.in, conn.place = l.strangers, l.strangers.PushBack(conn)
	return conn, nil
}

// room takes a slot, if need be from who has to leave, also when that turns out
// while it waits.
func (l *limitListener) room() error {
	for {
		select {
		case l.slots <- struct{}{}:
			return nil
		default:
		}
		c, later := l.leaver()
		if c != nil {
			c.Close()
			continue
		}
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-l.left:
		case <-later:
		case <-l.done:
			return net.ErrClosed
		}
	}
}

// leaver is the stranger that came first, else a guest that stayed too long; when
// it is nil, the channel tells when to ask again.
func (l *limitListener) leaver() (*limitConn, <-chan time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.strangers.Front(); e != nil {
		return e.Value.(*limitConn), nil
	}
	e := l.guests.Front()
	if e == nil || !l.brief {
		return nil, nil
	}
	c := e.Value.(*limitConn)
	if left := gateSlow - time.Since(c.since); left > 0 {
		return nil, time.After(left)
	}
	return c, nil
}

func (l *limitListener) release(c *limitConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	c.in.Remove(c.place)
	<-l.slots
}

func (l *limitListener) Close() error {
	l.closeOnce.Do(func() { close(l.done) })
	return l.Listener.Close()
}
