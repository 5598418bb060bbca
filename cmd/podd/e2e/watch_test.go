//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"podd/server"
)

// socket returns an HTTP client that connects to podd's Unix socket.
func (d *daemon) socket() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // so that podd closes its descriptors after the response
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(d.runDir(), server.SocketName))
		},
	}}
}

// get sends a GET request to the socket of podd and returns the body of the response, whose
// status must be 200.
func (d *daemon) get(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podd"+path, nil)
	if err != nil {
		return nil, err
	}
	reply, err := d.socket().Do(r)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusOK {
		reply.Body.Close()
		return nil, fmt.Errorf("GET %s: got status %s, want 200", path, reply.Status)
	}
	return reply.Body, nil
}

// state returns podd's current state, as commands such as podd ps get it.
func (d *daemon) state() (*server.View, error) {
	body, err := d.get(d.t.Context(), "/v1/state")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	v := &server.View{}
	return v, json.NewDecoder(body).Decode(v)
}

// until waits until check returns nil for podd's state, and returns that state. The parameter what
// describes the condition in the failure message.
func (d *daemon) until(what string, check func(*server.View) error) *server.View {
	d.t.Helper()
	return d.untilWithin(patience, what, check)
}

// untilWithin is like until, but waits at most for limit instead of patience.
func (d *daemon) untilWithin(limit time.Duration, what string, check func(*server.View) error) *server.View {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), limit)
	defer cancel()
	var last *server.View
	why := errors.New("podd has sent no state")
	for ctx.Err() == nil {
		err := d.watch(ctx, func(v *server.View) bool {
			last, why = v, check(v)
			return why == nil
		})
		if err == nil {
			return last
		}
		if !d.proc.running() {
			why = fmt.Errorf("podd exited: %s", d.proc.cmd.ProcessState)
			break
		}
	}
	text, _ := json.MarshalIndent(last, "", " ")
	d.t.Fatalf("waited %v until %s: %v\nlast state: %s", limit, what, why, text)
	return nil
}

// watch calls onState with every state that podd sends, until onState returns true. It returns an error if
// the stream ends before that.
func (d *daemon) watch(ctx context.Context, onState func(*server.View) bool) error {
	body, err := d.get(ctx, "/v1/state?watch=1")
	if err != nil {
		return err
	}
	defer body.Close()
	var v *server.View
	for lines := json.NewDecoder(body); ; {
		var c server.Change
		if err := lines.Decode(&c); err != nil {
			return err
		}
		v = c.Apply(v)
		if onState(v) {
			return nil
		}
	}
}

// consistently fails the test if check returns an error for a state that podd sends during the given
// number of seconds. podd sends its current state and then every change.
func (d *daemon) consistently(seconds int, what string, check func(*server.View) error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	err := d.watch(ctx, func(v *server.View) bool {
		err := check(v)
		if err != nil {
			d.t.Errorf("checking that %s: %v", what, err)
		}
		return err != nil
	})
	if err != nil && ctx.Err() == nil {
		d.t.Errorf("watching podd: %v", err)
	}
}
