package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds on what a client can make a face keep. Requests are small and have no
// body, but for a few bytes of JSON on the socket.
const (
	headerTimeout = 5 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
	defaultConns  = 64
	// endTimeout is how long handlers may take to notice that they should end
	// before their connections are cut.
	endTimeout = time.Second
)

// Server runs a handler on a listener.
type Server struct {
	Handler http.Handler // required
	// TLS has clients speak TLS; nil: plain HTTP. It must have a certificate.
	TLS *tls.Config
	// MaxConns is how many connections are open at a time; 0 stands for 64. One
	// more has the oldest closed by which nothing is being answered. Where there is
	// none it waits; without Guarded and Streams only until an answer lasts for a
	// second, which is cut then: who takes none of it would keep everybody out.
	MaxConns int
	// Guarded says that Handler tells by Admit who is known: only their connections
	// stay then, while anything or nothing is being answered.
	Guarded bool
	// MaxHeader is how many bytes a request's line and headers may have; 0
	// stands for 16 KiB.
	MaxHeader int
	// Streams says that answers may last: they have no time limit, but bodies
	// of requests do.
	Streams bool
	// Log is told of handlers that panicked; nil for slog.Default.
	Log *slog.Logger
}

// Listen opens a TCP listener for Serve. flag names it in errors:
// "--healthz-port".
func Listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{Control: impatient}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s, %s: %w; end what listens there, or give another port", addr, flag, cause(err))
	}
	return ln, nil
}

// impatient has the kernel give up clients that confirm nothing, also while what
// was sent to them waits in its buffers. Connections inherit it.
func impatient(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patience.Milliseconds()))
	})
	return errors.Join(err, failed)
}

// Serve answers on ln until ctx is done, which also ends the contexts of all
// requests, and returns when every handler has returned. It closes ln. The
// error is nil unless ln failed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns, handlers sync.WaitGroup
	hs := s.httpServer(ctx, &conns)
	hs.Handler = s.counted(&handlers)

	conn := limited(ln, s.MaxConns)
	conn.brief = !s.Guarded && !s.Streams
	defer conn.Close()
	served := make(chan error, 1)
	go func() { served <- s.accept(hs, conn) }()
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-served:
		cancel()
	}

	end, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer stop()
	if hs.Shutdown(end) != nil {
		hs.Close()
	}
	if failed == nil {
		failed = <-served
	}
	conns.Wait()
	conn.cut() // those that a handler took over
	handlers.Wait()
	if errors.Is(failed, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("accepting on %s: %w", ln.Addr(), cause(failed))
}

func (s *Server) counted(running *sync.WaitGroup) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		if !s.Guarded {
			Admit(r)
		}
		if s.Streams && r.ContentLength != 0 {
			// What the handler leaves of the body net/http reads after it. The
			// deadline ends with the body, and when a stream is taken over.
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(answerTimeout))
		}
		s.Handler.ServeHTTP(w, r)
	})
}

func (s *Server) accept(hs *http.Server, ln net.Listener) error {
	if s.TLS == nil {
		return hs.Serve(ln)
	}
	return hs.ServeTLS(ln, "", "")
}

func (s *Server) httpServer(ctx context.Context, conns *sync.WaitGroup) *http.Server {
	log := s.Log
	if log == nil {
		log = slog.Default()
	}
	hs := &http.Server{
		TLSConfig:         s.TLS,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    cmp.Or(s.MaxHeader, maxHeader),
		ErrorLog:          slog.NewLogLogger(quiet{log.Handler()}, slog.LevelWarn),
		Protocols:         http1(),
		// net/http would answer OPTIONS * past the handler, and so past its guard.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext:                  withConn,
		// A connection is new before Serve can return, and closed after its
		// last handler returned.
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateIdle: // all of the answer is sent, not only made
				if l, ok := plain(c).(*limitConn); ok && !s.Guarded {
					l.guest(false)
				}
			case http.StateClosed, http.StateHijacked:
				conns.Done()
			}
		},
	}
	if !s.Streams {
		hs.ReadTimeout, hs.WriteTimeout = answerTimeout, answerTimeout
	}
	return hs
}

// http1 leaves HTTP/2 out: its connections have no time limit for a first
// request, and nothing that takes a connection over can use it.
func http1() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	return p
}

// quiet keeps what any stranger can make a server say, as often as they like,
// to those who are debugging.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: TLS handshake error") {
		if r.Level = slog.LevelDebug; !q.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r)
}

// cause is what the system said, without the layers that repeat the address.
func cause(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return err
}
