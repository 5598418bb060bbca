package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"podd/server"
)

// errPoddEnded is that podd went away in the middle of an answer.
var errPoddEnded = errors.New("podd ended; the pods run on")

// watch calls each with the present View and with every later one, as far as
// each keeps up, until each says it is done or fails, or ctx is done.
func (p *peer) watch(ctx context.Context, each func(*server.View) (done bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := p.call(ctx, http.MethodGet, "/v1/state", url.Values{"watch": {"1"}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var v *server.View
	return eachLine(ctx, resp.Body, func(c *server.Change) (bool, error) {
		if v == nil && !c.Whole {
			return false, fmt.Errorf("reading the answer of podd at %s: it begins amid changes", p.socket)
		}
		v = c.Apply(v)
		return each(v)
	})
}

// down asks for the end of every pod and calls each with what is told of it.
func (p *peer) down(ctx context.Context, each func(*server.Down)) error {
	return p.ends(ctx, "/v1/down", nil, each)
}

// shutdown is the same since the machine goes down, within grace if there is one.
func (p *peer) shutdown(ctx context.Context, grace time.Duration, each func(*server.Down)) error {
	query := url.Values{}
	if grace > 0 {
		query.Set("grace", grace.String())
	}
	return p.ends(ctx, "/v1/shutdown", query, each)
}

// resume is that it does not go down after all.
func (p *peer) resume(ctx context.Context) error {
	resp, err := p.call(ctx, http.MethodPost, "/v1/resume", nil, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (p *peer) ends(ctx context.Context, path string, query url.Values, each func(*server.Down)) error {
	resp, err := p.call(ctx, http.MethodPost, path, query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return eachLine(ctx, resp.Body, func(d *server.Down) (bool, error) {
		each(d)
		if d.Error != "" {
			return true, errors.New(d.Error)
		}
		return d.Done, nil
	})
}

// eachLine reads lines of JSON until each is done or fails.
func eachLine[T any](ctx context.Context, from io.Reader, each func(*T) (bool, error)) error {
	lines := json.NewDecoder(from)
	for {
		line := new(T)
		if err := lines.Decode(line); err != nil {
			return broken(ctx, err)
		}
		if done, err := each(line); done || err != nil {
			return err
		}
	}
}

// broken says what the end of an unfinished answer means.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("reading podd's answer: %w", err)
	}
	return errPoddEnded
}

// restart asks for a restart; it returns when that is decided.
func (p *peer) restart(ctx context.Context, t server.Target) error {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, err := p.call(limited, http.MethodPost, "/v1/restart", nil, t)
	if err != nil {
		return p.slow(ctx, err)
	}
	return resp.Body.Close()
}

// logs copies a container's log to w.
func (p *peer) logs(ctx context.Context, req server.LogRequest, w io.Writer) error {
	q := url.Values{
		"namespace": {req.Pod.Namespace}, "pod": {req.Pod.Name}, "container": {req.Container},
		"tail":       {strconv.FormatInt(req.Tail, 10)},
		"limit":      {strconv.FormatInt(req.Limit, 10)},
		"follow":     {strconv.FormatBool(req.Follow)},
		"previous":   {strconv.FormatBool(req.Previous)},
		"timestamps": {strconv.FormatBool(req.Timestamps)},
	}
	if req.Stream != "" {
		q.Set("stream", string(req.Stream))
	}
	if !req.Since.IsZero() {
		q.Set("since", req.Since.Format(time.RFC3339Nano))
	}
	resp, err := p.call(ctx, http.MethodGet, "/v1/logs", q, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := copyTo(w, resp.Body); err != nil {
		if failed := (*writeError)(nil); errors.As(err, &failed) {
			return err
		}
		return broken(ctx, err)
	}
	if text := resp.Trailer.Get(server.ErrorTrailer); text != "" {
		return errors.New(text)
	}
	return ctx.Err()
}

// writeError is that our own output failed, not podd.
type writeError struct{ err error }

func (e *writeError) Error() string { return "writing the log: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// copyTo is io.Copy that tells a failing w from a failing r.
func copyTo(w io.Writer, r io.Reader) (int64, error) {
	return io.Copy(writerFunc(func(b []byte) (int, error) {
		n, err := w.Write(b)
		if err != nil {
			err = &writeError{err}
		}
		return n, err
	}), r)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
