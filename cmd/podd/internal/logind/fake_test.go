package logind

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// fakeLogind is a bus with nobody on it but logind and systemd, as far as a watcher
// speaks with them.
type fakeLogind struct {
	dropIn string

	mu        sync.Mutex // guards all following
	delay     time.Duration
	preparing bool
	state     string
	lock      *os.File // the other end of the inhibitor
	calls     []string
	conns     []*net.UnixConn
	serial    uint32
	listener  *net.UnixListener
	serving   sync.WaitGroup
}

func newFake(delay time.Duration) *fakeLogind { return &fakeLogind{delay: delay, state: "running"} }

// serve listens and returns the address.
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
			l.serving.Go(func() { l.speak(c) })
		}
	})
	return "unix:path=" + path
}

func (l *fakeLogind) stop() {
	l.mu.Lock()
	if l.listener != nil {
		l.listener.Close()
	}
	l.mu.Unlock()
	l.hangUp()
	l.serving.Wait()
}

func (l *fakeLogind) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
}

func (l *fakeLogind) connections() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.conns) }

// speak authenticates one client and answers its calls.
func (l *fakeLogind) speak(c *net.UnixConn) {
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
				if err != nil || l.answer(c, m) != nil {
					return
				}
			}
		}
	}
}

func (l *fakeLogind) answer(c *net.UnixConn, m *dbus.Message) error {
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
		l.reread()
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

// reread is what logind does at a SIGHUP.
func (l *fakeLogind) reread() {
	text, _ := os.ReadFile(l.dropIn)
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "InhibitDelayMaxSec="); ok {
			seconds, _ := strconv.Atoi(strings.TrimSpace(n))
			l.delay = time.Duration(seconds) * time.Second
		}
	}
}

// send is for who holds mu.
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
	// The library numbers only what a client sends.
	binary.LittleEndian.PutUint32(text.Bytes()[8:], l.serial)
	_, _, err = c.WriteMsgUnix(text.Bytes(), unix.UnixRights(files...), nil)
	return err
}

// inhibited says that the client has not let go of its lock.
func (l *fakeLogind) inhibited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return false
	}
	l.lock.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := l.lock.Read(make([]byte, 1))
	return os.IsTimeout(err)
}

// prepare says that the machine goes down, or does not, as logind does.
func (l *fakeLogind) prepare(t *testing.T, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preparing = is
	l.signalLocked(t, manager, "PrepareForShutdown", is)
}

// spoof is what anybody on the bus may send.
func (l *fakeLogind) spoof(t *testing.T, iface, member string, body ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signalLocked(t, iface, member, body...)
}

func (l *fakeLogind) signalLocked(t *testing.T, iface, member string, body ...any) {
	err := l.send(l.conns[len(l.conns)-1], dbus.TypeSignal, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/login1")), dbus.FieldSender: dbus.MakeVariant(":1.2"),
	}, body)
	if err != nil {
		t.Error(err)
	}
}

func (l *fakeLogind) asked(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.calls, what)
}

// count is how often something was called, or a property read.
func (l *fakeLogind) count(what string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c == what {
			n++
		}
	}
	return n
}
