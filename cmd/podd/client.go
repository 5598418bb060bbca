package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/server"
)

// checkoutRunDir is where make run has podd's socket, in the checkout.
const checkoutRunDir = ".run/run"

// answerTimeout is how long podd may take over an answer that does not last.
const answerTimeout = 10 * time.Second

// Client is how a verb finds the running podd. Embedded by those that ask it.
type Client struct {
	RunDir string `env:"PODD_RUN_DIR" placeholder:"DIR" help:"Where the running podd has its socket (/run/podd; in a checkout with a podd of make run, its own)."`
}

// peer is the running podd behind its socket. Its errors are for users.
type peer struct {
	socket string
	http   *http.Client
}

// connect returns the podd that answers, or says why there is none.
func (c Client) connect(ctx context.Context) (*peer, error) {
	if c.RunDir != "" {
		p := newPeer(c.RunDir)
		return p, p.ping(ctx)
	}
	return nearer(ctx, newPeer(checkoutRunDir), newPeer(config.DefaultRunDir))
}

// nearer is the first of two that is there, else the one that was.
func nearer(ctx context.Context, first, second *peer) (*peer, error) {
	firstErr := first.ping(ctx)
	if firstErr == nil || errors.Is(firstErr, fs.ErrPermission) {
		return first, firstErr
	}
	err := second.ping(ctx)
	killed, absent := notRunning{}, notRunning{}
	if errors.As(firstErr, &killed) && killed.dead && errors.As(err, &absent) && !absent.dead {
		return first, firstErr
	}
	return second, err
}

func newPeer(runDir string) *peer {
	p := &peer{socket: filepath.Join(runDir, server.SocketName)}
	p.http = &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) },
		DisableKeepAlives: true, // a verb asks once or twice
	}}
	return p
}

// dial connects and sees who is there: a socket in a directory that others can
// write to may be anybody's.
func (p *peer) dial(ctx context.Context) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return nil, err
	}
	uid, err := server.PeerUID(c.(*net.UnixConn))
	if err == nil && !server.Trusted(uid) {
		err = fmt.Errorf("it is served by user %d and not by root", uid)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// ping tells whether somebody can be reached.
func (p *peer) ping(ctx context.Context) error {
	c, err := p.dial(ctx)
	if err != nil {
		return p.explain(ctx, err)
	}
	return c.Close()
}

// notRunning is that nobody is at the socket; dead, that somebody was.
type notRunning struct {
	socket string
	dead   bool
}

func (e notRunning) Error() string {
	why, dir := "no socket at", filepath.Dir(e.socket)
	if e.dead {
		why = "nobody answers at"
	}
	start := "podd --pod-manifest-path DIR"
	switch dir {
	case config.DefaultRunDir:
	case filepath.Clean(checkoutRunDir):
		start = "make run"
	default:
		start = "podd --run-dir " + dir + " --pod-manifest-path DIR"
	}
	return fmt.Sprintf("podd is not running (%s %s); start it with: %s", why, e.socket, start)
}

// explain says what a failed connection means.
func (p *peer) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return notRunning{p.socket, false}
	case errors.Is(err, syscall.ECONNREFUSED):
		return notRunning{p.socket, true}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("asking podd at %s: %w; only root may, try with sudo", p.socket, fs.ErrPermission)
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("asking podd at %s: %w", p.socket, err)
}

// call makes one request; the caller closes the body, which is of status 200.
func (p *peer) call(ctx context.Context, method, path string, q url.Values, body any) (*http.Response, error) {
	return p.ask(ctx, method, path, q, body, "")
}

// ask is call for a media type.
func (p *peer) ask(ctx context.Context, method, path string, q url.Values, body any, accept string) (*http.Response, error) {
	head := http.Header{}
	if accept != "" {
		head.Set("Accept", accept)
	}
	return p.send(ctx, method, path, q, body, head)
}

// send is call with heads of its own.
func (p *peer) send(ctx context.Context, method, path string, q url.Values, body any, head http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("writing a request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	target := url.URL{Scheme: "http", Host: "podd", Path: path, RawQuery: q.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	r.Header = head
	resp, err := p.http.Do(r)
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, p.refusal(resp, method, path)
}

// refusal is what an answer says of why it is none: in podd's form, or in that
// of Kubernetes.
func (p *peer) refusal(resp *http.Response, method, path string) error {
	var said struct {
		Error, Message string
		Reason         server.Reason
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came is shown
	if json.Unmarshal(text, &said) != nil || said.Error+said.Message == "" {
		said.Error = fmt.Sprintf("podd at %s answered %s to %s %s; is it of another version?", p.socket, resp.Status, method, path)
	}
	return &server.Error{Status: resp.StatusCode, Message: orElse(said.Error, said.Message), Reason: said.Reason}
}

// state is everything podd shows, now.
func (p *peer) state(ctx context.Context) (*server.View, error) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, err := p.call(limited, http.MethodGet, "/v1/state", nil, nil)
	if err != nil {
		return nil, p.slow(ctx, err)
	}
	defer resp.Body.Close()
	v := &server.View{}
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return nil, p.slow(ctx, fmt.Errorf("reading the answer of podd at %s: %w", p.socket, err))
	}
	return v, nil
}

// slow tells our own time limit from the user's.
func (p *peer) slow(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("podd at %s has not answered for %s; its log may say why", p.socket, answerTimeout)
	}
	return err
}
