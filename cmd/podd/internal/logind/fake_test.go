package logind

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// A fakeLogind is a fake system bus with the methods and properties of logind and systemd that a
// watcher uses.
type fakeLogind struct {
	dropIn string // path of the drop-in file that reload reads

	mu        sync.Mutex      // guards all following fields
	delay     time.Duration   // property InhibitDelayMaxUSec of logind
	preparing bool            // property PreparingForShutdown of logind
	state     string          // property SystemState of systemd
	lock      *os.File        // read end of the pipe that is the inhibitor lock; the client has the write end
	calls     []string        // methods called and properties read
	conns     []*net.UnixConn // all connections, including closed ones
	serial    uint32
	listener  *net.UnixListener
	serving   sync.WaitGroup
}

// newFake returns a fakeLogind with InhibitDelayMaxSec=delay, on a host that is running.
func newFake(delay time.Duration) *fakeLogind { return &fakeLogind{delay: delay, state: "running"} }

// serve starts the bus and returns its address.
func (l *fakeLogind) serve(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "bus")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Error(err)
		return "unix:path=/nowhere"
	}
	l.mu.Lock()
	l.listener = ln
	l.mu.Unlock()
	l.serving.Go(func() {
		for {
			c, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			l.mu.Lock()
			l.conns = append(l.conns, c)
			l.mu.Unlock()
			l.serving.Go(func() { l.serveConn(c) })
		}
	})
	return "unix:path=" + path
}

// stop closes the listener and all connections.
func (l *fakeLogind) stop() {
	l.mu.Lock()
	if l.listener != nil {
		l.listener.Close()
	}
	l.mu.Unlock()
	l.disconnect()
	l.serving.Wait()
}

// disconnect closes all connections.
func (l *fakeLogind) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
}

// connections returns how many connections clients have opened, including closed connections.
func (l *fakeLogind) connections() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.conns) }

// serveConn authenticates one client and handles its calls.
func (l *fakeLogind) serveConn(c *net.UnixConn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch line = strings.Trim(line, "\x00\r\n"); {
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			c.Write([]byte("OK 0123456789abcdef0123456789abcdef\r\n"))
		case line == "AUTH":
			c.Write([]byte("REJECTED EXTERNAL\r\n"))
		case line == "NEGOTIATE_UNIX_FD":
			c.Write([]byte("AGREE_UNIX_FD\r\n"))
		case line == "BEGIN":
			for {
				m, err := dbus.DecodeMessage(in)
				if err != nil || l.handle(c, m) != nil {
					return
				}
			}
		}
	}
}

// handle replies to a method call.
func (l *fakeLogind) handle(c *net.UnixConn, m *dbus.Message) error {
	member, _ := m.Headers[dbus.FieldMember].Value().(string)
	if member == "Get" {
		member, _ = m.Body[1].(string)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, member)
	var body []any
	switch member {
	case "Hello":
		body = []any{":1.1"}
	case "InhibitDelayMaxUSec":
		body = []any{dbus.MakeVariant(uint64(l.delay / time.Microsecond))}
	case "PreparingForShutdown":
		body = []any{dbus.MakeVariant(l.preparing)}
	case "SystemState":
		body = []any{dbus.MakeVariant(l.state)}
	case "KillUnit":
		l.reload()
	case "Inhibit":
		if l.preparing {
			return l.send(c, dbus.TypeError, map[dbus.HeaderField]dbus.Variant{
				dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()),
				dbus.FieldErrorName:   dbus.MakeVariant("org.freedesktop.login1.OperationInProgress"),
			}, nil)
		}
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer w.Close()
		l.lock = r
		body = []any{dbus.UnixFD(w.Fd())}
	}
	return l.send(c, dbus.TypeMethodReply, map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(m.Serial())}, body)
}

// reload reads the drop-in file, like logind after a SIGHUP. The caller must hold mu.
func (l *fakeLogind) reload() {
	text, _ := os.ReadFile(l.dropIn)
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "InhibitDelayMaxSec="); ok {
			seconds, _ := strconv.Atoi(strings.TrimSpace(n))
			l.delay = time.Duration(seconds) * time.Second
		}
	}
}

// send writes a message. The caller must hold mu.
func (l *fakeLogind) send(c *net.UnixConn, kind dbus.Type, headers map[dbus.HeaderField]dbus.Variant, body []any) error {
	l.serial++
	m := &dbus.Message{Type: kind, Headers: headers, Body: body}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var text bytes.Buffer
	fds, err := m.CountFds()
	if err == nil && fds > 0 {
		m.Headers[dbus.FieldUnixFDs] = dbus.MakeVariant(uint32(fds))
	}
	files, err := m.EncodeToWithFDs(&text, binary.LittleEndian)
	if err != nil {
		return err
	}
	// The library sets the serial number only of messages that a client sends.
	binary.LittleEndian.PutUint32(text.Bytes()[8:], l.serial)
	_, _, err = c.WriteMsgUnix(text.Bytes(), unix.UnixRights(files...), nil)
	return err
}

// isInhibited reports whether a client holds an inhibitor lock. This is the case while the client has the
// write end of the pipe open.
func (l *fakeLogind) isInhibited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return false
	}
	l.lock.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := l.lock.Read(make([]byte, 1))
	return os.IsTimeout(err)
}

// setPreparing starts or cancels a host shutdown and sends the signal PrepareForShutdown.
func (l *fakeLogind) setPreparing(t *testing.T, preparing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preparing = preparing
	l.signalLocked(t, logindManager, "PrepareForShutdown", preparing)
}

// spoof sends a signal as another client of the bus to the newest connection.
func (l *fakeLogind) spoof(t *testing.T, iface, member string, body ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signalLocked(t, iface, member, body...)
}

// signalLocked sends a signal to the newest connection. The caller must hold mu.
func (l *fakeLogind) signalLocked(t *testing.T, iface, member string, body ...any) {
	err := l.send(l.conns[len(l.conns)-1], dbus.TypeSignal, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/login1")), dbus.FieldSender: dbus.MakeVariant(":1.2"),
	}, body)
	if err != nil {
		t.Error(err)
	}
}

// count returns the number of calls of a method or reads of a property.
func (l *fakeLogind) count(member string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c == member {
			n++
		}
	}
	return n
}
