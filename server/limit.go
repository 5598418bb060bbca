package server

import (
	"container/list"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// newLimitListener returns a listener with at most n open connections; n = 0 means 64. If the limit
// is reached, Accept closes the oldest connection that is not admitted (see setAdmitted). If all
// connections are admitted, Accept waits. If mayCloseSlow is set, Accept waits only until a
// connection has been admitted for gateSlotTimeout, and then closes that connection.
func newLimitListener(ln net.Listener, n int) *limitListener {
	if n == 0 {
		n = defaultMaxConns
	}
	return &limitListener{
		Listener: ln, slots: make(chan struct{}, n), done: make(chan struct{}),
		unadmitSignal: make(chan struct{}, 1), openConns: map[*limitConn]bool{},
		unadmittedConns: list.New(), admittedConns: list.New(),
	}
}

type limitListener struct {
	net.Listener
	mayCloseSlow  bool          // see newLimitListener
	slots         chan struct{} // holds one element for each open connection
	done          chan struct{} // closed by Close
	closeOnce     sync.Once
	unadmitSignal chan struct{} // receives a value when an admitted connection has ended

	mu              sync.Mutex // guards all following fields, and the fields list, element and admittedAt of each limitConn
	openConns       map[*limitConn]bool
	unadmittedConns *list.List // elements are *limitConn, the oldest first
	admittedConns   *list.List // elements are *limitConn, in the order of admission
}

// closeAll closes every open connection, including hijacked ones.
func (l *limitListener) closeAll() { l.closeIf(func(*limitConn) bool { return true }) }

// closeIf closes the open connections for which matches returns true, including
// hijacked ones. closed is their number.
func (l *limitListener) closeIf(matches func(*limitConn) bool) (closed int) {
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.openConns))
	l.mu.Unlock()
	conns = slices.DeleteFunc(conns, func(c *limitConn) bool { return !matches(c) })
	for _, c := range conns {
		c.Close()
	}
	return len(conns)
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if err := l.acquire(); err != nil {
		c.Close()
		return nil, err
	}
	conn := &limitConn{Conn: c, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.openConns[conn] = true
	conn.list, conn.element = l.unadmittedConns, l.unadmittedConns.PushBack(conn)
	return conn, nil
}

// acquire waits for a slot. If all slots are in use, it closes a connection as soon as
// findVictim returns one. It returns an error if the listener is closed.
func (l *limitListener) acquire() error {
	for {
		select {
		case l.slots <- struct{}{}:
			return nil
		default:
		}
		c, retry := l.findVictim()
		if c != nil {
			c.Close()
			continue
		}
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-l.unadmitSignal:
		case <-retry:
		case <-l.done:
			return net.ErrClosed
		}
	}
}

// findVictim returns the connection to close: the oldest connection that is not admitted or, if
// mayCloseSlow is set, a connection that has been admitted for gateSlotTimeout. If c is nil, no
// connection may be closed now, and retry receives a value when findVictim should be called again.
// If retry is also nil, no connection may be closed until a connection ends or is no longer
// admitted.
func (l *limitListener) findVictim() (c *limitConn, retry <-chan time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.unadmittedConns.Front(); e != nil {
		return e.Value.(*limitConn), nil
	}
	e := l.admittedConns.Front()
	if e == nil || !l.mayCloseSlow {
		return nil, nil
	}
	c = e.Value.(*limitConn)
	if remaining := gateSlotTimeout - time.Since(c.admittedAt); remaining > 0 {
		return nil, time.After(remaining)
	}
	return c, nil
}

func (l *limitListener) release(c *limitConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.openConns, c)
	c.list.Remove(c.element)
	<-l.slots
}

func (l *limitListener) Close() error {
	l.closeOnce.Do(func() { close(l.done) })
	return l.Listener.Close()
}
