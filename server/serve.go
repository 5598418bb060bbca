package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits on the resources that a client can use. Requests are small and have no
// body, except for a few bytes of JSON on the socket.
const (
	headerTimeout   = 5 * time.Second
	responseTimeout = 30 * time.Second
	idleTimeout     = time.Minute
	maxHeaderBytes  = 16 << 10
	defaultMaxConns = 64
	// shutdownTimeout is the time for which handlers may continue after their contexts
	// are canceled, before their connections are closed.
	shutdownTimeout = time.Second
)

// Server runs a handler on a listener.
type Server struct {
	Handler http.Handler // required
	// TLS enables TLS; nil means plain HTTP. It must have a certificate.
	TLS *tls.Config
	// MaxConns is the maximum number of open connections; 0 means 64. If the maximum is reached, a
	// new connection replaces the oldest connection without a request in progress. If every
	// connection has a request in progress, the new connection waits. If neither
	// HandlerMarksAuthenticated nor AllowsStreams is set, it waits only until a request has been in
	// progress for a second. It then replaces the connection of that request, because clients that
	// do not read their responses would otherwise block all others.
	MaxConns int
	// HandlerMarksAuthenticated must be set if Handler calls MarkAuthenticated for requests of
	// authenticated clients. If it is set, a new connection never replaces the connection of an
	// authenticated client. It may replace any other connection, even one with a request in progress.
	HandlerMarksAuthenticated bool
	// MaxHeaderBytes limits the size of a request line with its headers, in bytes; 0
	// means 16 KiB.
	MaxHeaderBytes int
	// AllowsStreams removes the time limit for responses. Request bodies are still
	// limited.
	AllowsStreams bool
	// Log receives panics of handlers and errors of connections; nil means slog.Default().
	Log *slog.Logger

	listener atomic.Pointer[limitListener] // set by Serve
}

// CloseClients closes the connections of clients with a certificate for which matches returns true,
// including connections that carry streams. closed is their number. Before the call, the Handler
// must begin to reject these certificates, because otherwise the clients could connect again.
func (s *Server) CloseClients(matches func(*x509.Certificate) bool) (closed int) {
	l := s.listener.Load()
	if l == nil {
		return 0
	}
	return l.closeIf(func(c *limitConn) bool {
		certificate := c.clientCertificate.Load()
		return certificate != nil && matches(certificate)
	})
}

// Listen returns a TCP listener for Serve. Errors contain flag, the flag that configures addr, such
// as "--healthz-port".
func Listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{Control: setUserTimeout}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s, %s: %w; stop the process that uses the port, or use another port", addr, flag, syscallCause(err))
	}
	return ln, nil
}

// setUserTimeout makes the kernel close a connection if the client's host acknowledges no data for
// writeTimeout. This also works while podd does not write, because the data is in the kernel's
// buffers. Accepted connections inherit this option.
func setUserTimeout(_, _ string, c syscall.RawConn) error {
	var sockoptErr error
	err := c.Control(func(fd uintptr) {
		sockoptErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(writeTimeout.Milliseconds()))
	})
	return errors.Join(err, sockoptErr)
}

// Serve serves requests on ln until ctx is done, which also cancels the contexts of all
// requests. Serve closes ln and returns when every handler has returned. The error is nil
// unless ln failed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns, handlers sync.WaitGroup
	hs := s.httpServer(ctx, &conns)
	hs.Handler = s.trackRequests(&handlers)

	conn := newLimitListener(ln, s.MaxConns)
	conn.mayCloseSlow = !s.HandlerMarksAuthenticated && !s.AllowsStreams
	defer conn.Close()
	s.listener.Store(conn)
	serveResult := make(chan error, 1)
	go func() { serveResult <- s.serveListener(hs, conn) }()
	var serveErr error
	select {
	case <-ctx.Done():
	case serveErr = <-serveResult:
		cancel()
	}

	shutdownCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if hs.Shutdown(shutdownCtx) != nil {
		hs.Close()
	}
	if serveErr == nil {
		serveErr = <-serveResult
	}
	conns.Wait()
	conn.closeAll() // closeAll also closes hijacked connections, which hs does not track
	handlers.Wait()
	if errors.Is(serveErr, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("accepting connections on %s: %w", ln.Addr(), syscallCause(serveErr))
}

// trackRequests returns a handler that calls the Handler of s, and adds the calls in progress to
// handlers. It also limits the time to read request bodies.
func (s *Server) trackRequests(handlers *sync.WaitGroup) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		recordCertificate(r)
		if !s.HandlerMarksAuthenticated {
			MarkAuthenticated(r)
		}
		if s.AllowsStreams && r.ContentLength != 0 {
			// The deadline applies to the Handler and to net/http, which reads the rest of the body
			// after the Handler has returned. It is cleared when the body has been read, and when
			// the connection is hijacked.
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(responseTimeout))
		}
		s.Handler.ServeHTTP(w, r)
	})
}

func (s *Server) serveListener(hs *http.Server, ln net.Listener) error {
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
		MaxHeaderBytes:    cmp.Or(s.MaxHeaderBytes, maxHeaderBytes),
		ErrorLog:          slog.NewLogLogger(quietLogHandler{log.Handler()}, slog.LevelWarn),
		Protocols:         http1(),
		// Without this option, net/http would respond to OPTIONS * and would not call the handler,
		// which authorizes requests.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext:                  withConn,
		// conns counts the connections whose handlers may still run. A connection has StateNew
		// before hs.Serve can return, and StateClosed after its last handler has returned.
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateIdle: // no request is in progress, because the response has been sent completely
				if l, ok := unwrapTLS(c).(*limitConn); ok && !s.HandlerMarksAuthenticated {
					l.setAdmitted(false)
				}
			case http.StateClosed, http.StateHijacked:
				conns.Done()
			}
		},
	}
	if !s.AllowsStreams {
		hs.ReadTimeout, hs.WriteTimeout = responseTimeout, responseTimeout
	}
	return hs
}

// http1 returns the protocols that a server accepts. HTTP/2 is not among them, because connections
// with HTTP/2 have no time limit for the first request and cannot be hijacked.
func http1() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	return p
}

// quietLogHandler logs TLS handshake errors at debug level only, because
// unauthenticated clients can cause them at any rate.
type quietLogHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quietLogHandler) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: TLS handshake error") {
		if r.Level = slog.LevelDebug; !q.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r)
}

// syscallCause returns the error of the system call without the wrapping error, which repeats the
// address.
func syscallCause(err error) error {
	if opErr := (*net.OpError)(nil); errors.As(err, &opErr) {
		err = opErr.Err
	}
	return err
}
