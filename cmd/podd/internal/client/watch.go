package client

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

// ErrStreamEnded is the error of a streamed response that is incomplete, because podd has stopped.
var ErrStreamEnded = errors.New("podd stopped; its pods keep running")

// WatchViews passes the current View and every later View to onView. It returns when onView returns
// true (done) or an error, or when ctx is done. If onView is slow, WatchViews omits intermediate
// Views.
func (p *Client) WatchViews(ctx context.Context, onView func(*server.View) (done bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := p.call(ctx, http.MethodGet, "/v1/state", url.Values{"watch": {"1"}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var v *server.View
	return decodeEach(ctx, resp.Body, func(c *server.Change) (bool, error) {
		if v == nil && !c.IsComplete {
			return false, fmt.Errorf("decoding the response of podd at %s: the first value is not the complete state", p.socket)
		}
		v = c.Apply(v)
		return onView(v)
	})
}

// StopPods stops all pods. podd then starts no pods until it is restarted. StopPods passes every
// progress report to onProgress, and returns when all pods have stopped.
func (p *Client) StopPods(ctx context.Context, onProgress func(*server.StopProgress)) error {
	return p.stopAll(ctx, "/v1/down", nil, onProgress)
}

// Shutdown stops all pods like StopPods, but in the order of a node shutdown. grace is the maximum
// duration of the shutdown; 0 means the configured durations.
func (p *Client) Shutdown(ctx context.Context, grace time.Duration, onProgress func(*server.StopProgress)) error {
	query := url.Values{}
	if grace > 0 {
		query.Set("grace", grace.String())
	}
	return p.stopAll(ctx, "/v1/shutdown", query, onProgress)
}

// CancelShutdown cancels a shutdown, so that the pods start again.
func (p *Client) CancelShutdown(ctx context.Context) error {
	resp, err := p.call(ctx, http.MethodPost, "/v1/resume", nil, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// stopAll sends a request that stops all pods, and passes every progress report to onProgress.
func (p *Client) stopAll(ctx context.Context, path string, query url.Values, onProgress func(*server.StopProgress)) error {
	resp, err := p.call(ctx, http.MethodPost, path, query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decodeEach(ctx, resp.Body, func(d *server.StopProgress) (bool, error) {
		onProgress(d)
		if d.Error != "" {
			return true, errors.New(d.Error)
		}
		return d.Done, nil
	})
}

// decodeEach decodes a stream of JSON values, and passes every value to onValue. It returns when
// onValue returns true (done) or an error.
func decodeEach[T any](ctx context.Context, body io.Reader, onValue func(*T) (done bool, err error)) error {
	decoder := json.NewDecoder(body)
	for {
		value := new(T)
		if err := decoder.Decode(value); err != nil {
			return streamError(ctx, err)
		}
		if done, err := onValue(value); done || err != nil {
			return err
		}
	}
}

// streamError returns an error with a message for users. err is the error of reading a streamed
// response.
func streamError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("decoding podd's response: %w", err)
	}
	return ErrStreamEnded
}

// Restart requests a restart of containers. It returns when podd has accepted the request, not
// when the containers have restarted. It returns an error if podd has rejected the request.
func (p *Client) Restart(ctx context.Context, t server.ContainerTarget) error {
	return p.callAndDecode(ctx, http.MethodPost, "/v1/restart", nil, t, nil, nil)
}

// CopyLog copies the log of a container to w. It returns at the end of the log or, if the request
// follows the log, when the container has exited.
func (p *Client) CopyLog(ctx context.Context, req server.LogRequest, w io.Writer) error {
	query := url.Values{
		"namespace": {req.Pod.Namespace}, "pod": {req.Pod.Name}, "container": {req.Container},
		"tail":       {strconv.FormatInt(req.Tail, 10)},
		"limit":      {strconv.FormatInt(req.Limit, 10)},
		"follow":     {strconv.FormatBool(req.Follow)},
		"previous":   {strconv.FormatBool(req.Previous)},
		"timestamps": {strconv.FormatBool(req.Timestamps)},
	}
	if req.Stream != "" {
		query.Set("stream", string(req.Stream))
	}
	if !req.Since.IsZero() {
		query.Set("since", req.Since.Format(time.RFC3339Nano))
	}
	resp, err := p.call(ctx, http.MethodGet, "/v1/logs", query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := copyTo(w, resp.Body); err != nil {
		if writeErr := (*writeError)(nil); errors.As(err, &writeErr) {
			return err
		}
		return streamError(ctx, err)
	}
	if text := resp.Trailer.Get(server.ErrorTrailer); text != "" {
		return errors.New(text)
	}
	return ctx.Err()
}

// A writeError is an error of writing to the output of this process.
type writeError struct{ err error }

func (e *writeError) Error() string { return "writing the log: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// copyTo calls io.Copy. Errors of w are returned as *writeError.
func copyTo(w io.Writer, r io.Reader) (int64, error) {
	return io.Copy(writerFunc(func(b []byte) (int, error) {
		n, err := w.Write(b)
		if err != nil {
			err = &writeError{err}
		}
		return n, err
	}), r)
}

// A writerFunc is a function that implements io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
