// Package client sends requests to the running podd through its Unix socket. Errors of this
// package contain messages for users.
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
	"os"
	"path/filepath"
	"syscall"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/server"
)

// checkoutRunDir is the run directory of the podd that "make run" starts in a source checkout,
// relative to the checkout.
const checkoutRunDir = ".run/run"

// ResponseTimeout is the timeout of requests without a streamed response.
const ResponseTimeout = 10 * time.Second

// Flags are the flags with which a verb finds the running podd. Each verb that connects to podd
// embeds Flags.
type Flags struct {
	RunDir string `env:"PODD_RUN_DIR" placeholder:"DIR" help:"Directory with the socket of the running podd (/run/podd, or .run/run in a checkout where \"make run\" has started podd)."`
}

// A Client sends requests to the podd that serves a socket. It is safe for concurrent use.
type Client struct {
	socket string
	http   *http.Client
}

// Connect returns a Client of the running podd. If podd does not run, the error is of type
// NotRunningError.
func (c Flags) Connect(ctx context.Context) (*Client, error) {
	if c.RunDir != "" {
		p := New(c.RunDir)
		return p, p.ping(ctx)
	}
	return firstReachable(ctx, New(checkoutRunDir), New(config.DefaultRunDir))
}

// firstReachable returns first if the podd of first accepts connections, or if this user has no
// permission to connect to it. Otherwise it returns second. As an exception, it returns first if the
// socket of second does not exist, but the parent of first's run directory exists. In this case, only
// the podd of first has run before. If the podd of the result does not accept connections,
// firstReachable also returns an error.
func firstReachable(ctx context.Context, first, second *Client) (*Client, error) {
	firstErr := first.ping(ctx)
	if firstErr == nil || errors.Is(firstErr, fs.ErrPermission) {
		return first, firstErr
	}
	err := second.ping(ctx)
	notRunningErr := NotRunningError{}
	if _, statErr := os.Stat(filepath.Dir(first.RunDir())); statErr == nil && errors.As(err, &notRunningErr) && !notRunningErr.isRefused {
		return first, firstErr
	}
	return second, err
}

// New returns a Client of the podd that has its socket in runDir. Each request opens a
// connection.
func New(runDir string) *Client {
	p := &Client{socket: filepath.Join(runDir, server.SocketName)}
	p.http = &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) },
		DisableKeepAlives: true, // a verb sends only one or two requests, so connections need not be reused
	}}
	return p
}

// RunDir returns the path of the directory with the socket, which may be relative.
func (p *Client) RunDir() string { return filepath.Dir(p.socket) }

// dial connects to the socket. It returns an error if the server runs neither as root nor as the
// current user. Any user could have created the socket if its directory is writable for all users.
func (p *Client) dial(ctx context.Context) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: ResponseTimeout}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return nil, err
	}
	uid, err := server.PeerUID(c.(*net.UnixConn))
	if err == nil && !server.IsTrusted(uid) {
		err = fmt.Errorf("the process that listens on the socket runs as user ID %d, not as root", uid)
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

// A NotRunningError is the error of a request if no podd serves the socket.
type NotRunningError struct {
	socket string
	// isRefused is set if the socket exists and refuses connections, because the podd that created
	// the socket was killed. If isRefused is not set, the socket does not exist.
	isRefused bool
}

// Error returns a message with the command that starts podd.
func (e NotRunningError) Error() string {
	reason, dir := "no socket at", filepath.Dir(e.socket)
	if e.isRefused {
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

// connectionError returns an error with a message for users. err is the error of a request that
// received no response.
func (p *Client) connectionError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return NotRunningError{p.socket, false}
	case errors.Is(err, syscall.ECONNREFUSED):
		return NotRunningError{p.socket, true}
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

// call sends a request without additional headers. body is encoded as JSON; nil means no body.
// If the error is nil, the status is 200, and the caller must close the body of the response.
func (p *Client) call(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	return p.callWithHeader(ctx, method, path, query, body, nil)
}

// callWithHeader sends a request like call, with the headers in header.
func (p *Client) callWithHeader(ctx context.Context, method, path string, query url.Values, body any, header http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	target := url.URL{Scheme: "http", Host: "podd", Path: path, RawQuery: query.Encode()}
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

// callAndDecode sends a request and decodes the response into result. If result is nil, it ignores
// the body of the response. It returns an error after ResponseTimeout.
func (p *Client) callAndDecode(ctx context.Context, method, path string, query url.Values, body any, header http.Header, result any) error {
	requestCtx, cancel := context.WithTimeout(ctx, ResponseTimeout)
	defer cancel()
	resp, err := p.callWithHeader(requestCtx, method, path, query, body, header)
	switch {
	case err != nil:
	case result == nil:
		err = resp.Body.Close()
	default:
		err = p.decode(resp, result)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("no response from podd at %s within %s; see the log of podd", p.socket, ResponseTimeout)
	}
	return err
}

// responseError returns the error that a response describes. The body may be an error of podd's
// API or a metav1.Status.
func (p *Client) responseError(resp *http.Response, method, path string) error {
	var reply struct {
		Error, Message string
		Reason         server.Reason
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a body that cannot be read completely may still contain the error
	if json.Unmarshal(text, &reply) != nil || reply.Error+reply.Message == "" {
		reply.Error = fmt.Sprintf("podd at %s returned %s for %s %s; the running podd may have a different version; restart it", p.socket, resp.Status, method, path)
	}
	return &server.Error{Status: resp.StatusCode, Message: cmp.Or(reply.Error, reply.Message), Reason: reply.Reason}
}

// FetchView returns the current View of podd.
func (p *Client) FetchView(ctx context.Context) (*server.View, error) {
	v := &server.View{}
	if err := p.callAndDecode(ctx, http.MethodGet, "/v1/state", nil, nil, nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// decode decodes the body of a response into a value, and closes the body.
func (p *Client) decode(resp *http.Response, result any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(result); err != nil {
		return fmt.Errorf("decoding the response of podd at %s: %w", p.socket, err)
	}
	return nil
}
