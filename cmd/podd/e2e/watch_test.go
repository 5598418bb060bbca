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

// socket returns a client of podd's Unix socket.
func (d *daemon) socket() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // podd closes its descriptors after the response
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(d.runDir(), server.SocketName))
		},
	}}
}

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
		return nil, fmt.Errorf("GET %s: %s", path, reply.Status)
	}
	return reply.Body, nil
}

// state returns the state that podd shows now.
func (d *daemon) state() (*server.View, error) {
	body, err := d.get(d.t.Context(), "/v1/state")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	v := &server.View{}
	return v, json.NewDecoder(body).Decode(v)
}

// until waits for a state of podd for which is returns nil, and returns that state.
func (d *daemon) until(what string, is func(*server.View) error) *server.View {
	d.t.Helper()
	return d.untilWithin(patience, what, is)
}

func (d *daemon) untilWithin(limit time.Duration, what string, is func(*server.View) error) *server.View {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), limit)
	defer cancel()
	var last *server.View
	why := errors.New("podd has sent no state")
	for ctx.Err() == nil {
		err := d.watch(ctx, func(v *server.View) bool {
			last, why = v, is(v)
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
	d.t.Fatalf("waiting until %s: %v\nlast state: %s", what, why, text)
	return nil
}

// watch calls each with every state until it returns true. An error is the reason why the
// stream ended before that.
func (d *daemon) watch(ctx context.Context, each func(*server.View) bool) error {
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
		if each(v) {
			return nil
		}
	}
}

// consistently checks that is returns nil for every state of podd during these seconds.
func (d *daemon) consistently(seconds int, what string, is func(*server.View) error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	err := d.watch(ctx, func(v *server.View) bool {
		err := is(v)
		if err != nil {
			d.t.Errorf("checking that %s: %v", what, err)
		}
		return err != nil
	})
	if err != nil && ctx.Err() == nil {
		d.t.Errorf("watching podd: %v", err)
	}
}
