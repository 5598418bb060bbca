// Package client sends requests to the running podd on its Unix socket.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/server"
)

// checkoutRunDir is the run directory of a podd that "make run" started in a checkout.
const checkoutRunDir = ".run/run"

// ResponseTimeout limits requests without a streamed response.
const ResponseTimeout = 10 * time.Second

// Flags locate the running podd. Verbs that connect to it embed Flags.
type Flags struct {
	RunDir string `env:"PODD_RUN_DIR" placeholder:"DIR" help:"Directory with the socket of the running podd (/run/podd, or .run/run in a checkout where make run has started podd)."`
}

// A Client sends requests to the podd that serves a socket. The messages of its errors are
// for users.
type Client struct {
	socket string
	http   *http.Client
}

// Connect returns a Client of the running podd, or an error that explains why it cannot
// connect.
func (c Flags) Connect(ctx context.Context) (*Client, error) {
	if c.RunDir != "" {
		p := New(c.RunDir)
		return p, p.ping(ctx)
	}
	return firstReachable(ctx, New(checkoutRunDir), New(config.DefaultRunDir))
}

// firstReachable returns the first of two Clients whose podd accepts connections. If
// neither podd does, it prefers the Client whose socket exists, because its podd exited
// without removing the socket. If there is no socket, it returns second.
func firstReachable(ctx context.Context, first, second *Client) (*Client, error) {
	firstErr := first.ping(ctx)
	if firstErr == nil || errors.Is(firstErr, fs.ErrPermission) {
		return first, firstErr
	}
	err := second.ping(ctx)
	killed, absent := NotRunning{}, NotRunning{}
	if errors.As(firstErr, &killed) && killed.dead && errors.As(err, &absent) && !absent.dead {
		return first, firstErr
	}
	return second, err
}

// New returns a Client of the podd with its socket in runDir. It connects to nothing yet.
func New(runDir string) *Client {
	p := &Client{socket: filepath.Join(runDir, server.SocketName)}
	p.http = &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) },
		DisableKeepAlives: true, // a verb sends one or two requests
	}}
	return p
}

// dial connects to the socket and checks that root or the current user serves it, because
// any user can create a socket in a directory that others can write to.
func (p *Client) dial(ctx context.Context) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: ResponseTimeout}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return nil, err
	}
	uid, err := server.PeerUID(c.(*net.UnixConn))
	if err == nil && !server.IsTrusted(uid) {
		err = fmt.Errorf("the server of the socket runs as user %d, not as root", uid)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// ping returns nil if the socket accepts connections.
func (p *Client) ping(ctx context.Context) error {
	c, err := p.dial(ctx)
	if err != nil {
		return p.connectionError(ctx, err)
	}
	return c.Close()
}

// NotRunning is the error of a podd that does not run. Its socket does not exist or, if
// dead is set, refuses connections.
type NotRunning struct {
	socket string
	dead   bool
}

func (e NotRunning) Error() string {
	reason, dir := "no socket at", filepath.Dir(e.socket)
	if e.dead {
		reason = "connection refused at"
	}
	start := "podd --pod-manifest-path DIR"
	switch dir {
	case config.DefaultRunDir:
	case filepath.Clean(checkoutRunDir):
		start = "make run"
	default:
		start = "podd --run-dir " + dir + " --pod-manifest-path DIR"
	}
	return fmt.Sprintf("podd is not running (%s %s); start it with: %s", reason, e.socket, start)
}

// connectionError returns the error for users of a failed request.
func (p *Client) connectionError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return NotRunning{p.socket, false}
	case errors.Is(err, syscall.ECONNREFUSED):
		return NotRunning{p.socket, true}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("connecting to podd at %s: %w; only root may connect, try sudo", p.socket, fs.ErrPermission)
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("connecting to podd at %s: %w", p.socket, err)
}

// call sends a request without headers. If err is nil, the status is 200 and the caller
// must close the body.
func (p *Client) call(ctx context.Context, method, path string, q url.Values, body any) (*http.Response, error) {
	return p.callWithHeader(ctx, method, path, q, body, nil)
}

// callWithHeader is like call, but adds the headers in header.
func (p *Client) callWithHeader(ctx context.Context, method, path string, q url.Values, body any, header http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	target := url.URL{Scheme: "http", Host: "podd", Path: path, RawQuery: q.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return nil, fmt.Errorf("creating the request %s %s: %w", method, path, err)
	}
	maps.Copy(r.Header, header)
	resp, err := p.http.Do(r)
	if err != nil {
		return nil, p.connectionError(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, p.responseError(resp, method, path)
}

// fetch sends a request and decodes the response into to. Both must complete within
// ResponseTimeout. If to is nil, fetch ignores the body.
func (p *Client) fetch(ctx context.Context, method, path string, q url.Values, body any, header http.Header, to any) error {
	limited, cancel := context.WithTimeout(ctx, ResponseTimeout)
	defer cancel()
	resp, err := p.callWithHeader(limited, method, path, q, body, header)
	switch {
	case err != nil:
	case to == nil:
		err = resp.Body.Close()
	default:
		err = p.decode(resp, to)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("no response from podd at %s within %s; see its log", p.socket, ResponseTimeout)
	}
	return err
}

// responseError returns the error in a response. The body may be in the format of podd or
// of Kubernetes.
func (p *Client) responseError(resp *http.Response, method, path string) error {
	var reply struct {
		Error, Message string
		Reason         server.Reason
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // use a partial body, too
	if json.Unmarshal(text, &reply) != nil || reply.Error+reply.Message == "" {
		reply.Error = fmt.Sprintf("podd at %s returned %s for %s %s; its version may differ", p.socket, resp.Status, method, path)
	}
	return &server.Error{Status: resp.StatusCode, Message: cmp.Or(reply.Error, reply.Message), Reason: reply.Reason}
}

// State returns the current state of podd.
func (p *Client) State(ctx context.Context) (*server.View, error) {
	v := &server.View{}
	if err := p.fetch(ctx, http.MethodGet, "/v1/state", nil, nil, nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// decode decodes the body of a response into to, and closes it.
func (p *Client) decode(resp *http.Response, to any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
		return fmt.Errorf("decoding the response of podd at %s: %w", p.socket, err)
	}
	return nil
}
