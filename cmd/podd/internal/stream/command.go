package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// A Size is the size of a terminal in characters.
type Size struct{ Width, Height uint16 }

// A Command contains the client's streams of a command or container. A stream must be set if and
// only if the client has requested it from the server.
type Command struct {
	// Stdin is copied until its end; may be nil. Run may return while a Read of Stdin blocks.
	Stdin          io.Reader
	Stdout, Stderr io.Writer // may be nil
	// TTY is set if the command has a terminal; Stderr is then nil. Sizes receives the sizes of
	// the terminal, including the initial size; may be nil. The sender must close the channel
	// when ctx is done.
	TTY   bool
	Sizes <-chan Size
}

// An ExitError is the error of a command that has exited with a non-zero exit code.
type ExitError struct{ Code int }

// Error returns the message of kubectl exec for a non-zero exit code.
func (e *ExitError) Error() string {
	return "command terminated with exit code " + strconv.Itoa(e.Code)
}

// Run copies the streams between c and conn. It returns when the command has exited and all of its
// output has been written, or when ctx is done. It closes conn. If the exit code is not zero, Run
// returns an *ExitError.
func (c *Command) Run(ctx context.Context, conn *Conn) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	err := c.run(conn)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// run copies the streams until the command has exited or conn is closed.
func (c *Command) run(conn *Conn) error {
	s, err := c.openStreams(conn)
	if err != nil {
		return err
	}
	if c.Stdin != nil {
		go copyInput(c.Stdin, s[v1.StreamTypeStdin])
	}
	var out outputCopier
	if c.Stdout != nil {
		out.start(conn, c.Stdout, s[v1.StreamTypeStdout])
	}
	if c.Stderr != nil {
		out.start(conn, c.Stderr, s[v1.StreamTypeStderr])
	}
	if c.TTY {
		exited := make(chan struct{})
		var resizer sync.WaitGroup
		resizer.Go(func() { sendSizes(s[v1.StreamTypeResize], c.Sizes, exited) })
		defer resizer.Wait()
		defer conn.Close() // unblocks goroutines that write to the connection
		defer close(exited)
	}
	text, err := io.ReadAll(io.LimitReader(s[v1.StreamTypeError], maxMessageBytes))
	if outputErr := out.wait(); outputErr != nil {
		return outputErr
	}
	return decodeExitError(text, err)
}

// openStreams opens all streams in the order that servers expect, because servers start to read only
// when all streams are open.
func (c *Command) openStreams(conn *Conn) (map[string]httpstream.Stream, error) {
	streams := map[string]httpstream.Stream{}
	for _, s := range []struct {
		kind     string
		isNeeded bool
	}{
		{v1.StreamTypeError, true}, {v1.StreamTypeStdin, c.Stdin != nil}, {v1.StreamTypeStdout, c.Stdout != nil},
		{v1.StreamTypeStderr, c.Stderr != nil}, {v1.StreamTypeResize, c.TTY},
	} {
		if !s.isNeeded {
			continue
		}
		var err error
		if streams[s.kind], err = conn.openStream(s.kind); err != nil {
			return nil, err
		}
	}
	// Ignore the error of Close if the command has already exited. Its output can still be read.
	_ = streams[v1.StreamTypeError].Close()
	return streams, nil
}

// copyInput copies the input of the client to a stream and then closes the stream.
func copyInput(from io.Reader, to httpstream.Stream) {
	io.Copy(to, from) // the error is ignored, because it means that the command does not read its input any more
	to.Close()
}

// An outputCopier copies the output streams of a command, each stream in a separate goroutine.
type outputCopier struct {
	group sync.WaitGroup
	mu    sync.Mutex // guards err
	err   error
}

// start starts to copy from one stream to a writer until the end of the stream. If a write fails,
// the goroutine closes the connection, so that the command does not block.
func (c *outputCopier) start(conn *Conn, to io.Writer, from io.Reader) {
	c.group.Go(func() {
		w := &errorRecorder{to: to}
		io.Copy(w, from) // the error is ignored, because the error stream contains the result
		if w.err != nil {
			c.mu.Lock()
			c.err = errors.Join(c.err, fmt.Errorf("copying the output of the command: %w", w.err))
			c.mu.Unlock()
			conn.Close()
		}
	})
}

// wait waits until all streams have been copied. It returns the errors of all writes, or nil.
func (c *outputCopier) wait() error {
	c.group.Wait()
	return c.err
}

// An errorRecorder is a writer that records the error of a write.
type errorRecorder struct {
	to  io.Writer
	err error
}

func (s *errorRecorder) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.err = err
	return n, err
}

// sendSizes sends each size to the server until the channel sizes or the channel done is closed.
func sendSizes(to io.Writer, sizes <-chan Size, done <-chan struct{}) {
	e := json.NewEncoder(to)
	for {
		select {
		case s, ok := <-sizes:
			if !ok || e.Encode(s) != nil {
				return
			}
		case <-done:
			return
		}
	}
}

// decodeExitError returns the error that the error stream describes, or nil if the command
// succeeded. text is the content of the stream, a metav1.Status. err is the error of reading the
// stream.
func decodeExitError(text []byte, err error) error {
	if len(text) == 0 {
		return errConnectionClosed
	}
	var s metav1.Status
	if json.Unmarshal(text, &s) != nil {
		return errors.New(string(text)) // some servers send a text instead of a Status
	}
	switch {
	case s.Status == metav1.StatusSuccess:
		return nil
	case s.Reason == remotecommand.NonZeroExitCodeReason && s.Details != nil:
		for _, cause := range s.Details.Causes {
			if code, err := strconv.ParseUint(cause.Message, 10, 8); cause.Type == remotecommand.ExitCodeCauseType && err == nil && code > 0 {
				return &ExitError{int(code)}
			}
		}
	}
	if s.Message == "" {
		return fmt.Errorf("the command failed, and the runtime reported no reason: %w", errors.Join(err, errConnectionClosed))
	}
	return errors.New(s.Message)
}
