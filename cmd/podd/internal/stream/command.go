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
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// Size is the size of a terminal in characters.
type Size struct{ Width, Height uint16 }

// A Command contains the client's streams of a command or container. They must be those
// that were requested from the server.
type Command struct {
	// Stdin is copied until its end; may be nil. Run does not wait for a blocked Read.
	Stdin          io.Reader
	Stdout, Stderr io.Writer // may be nil
	// TTY is set if the command has a terminal; Stderr is then nil. Sizes receives the
	// sizes of the terminal, including the initial one; may be nil. The sender must close
	// it when ctx is done.
	TTY   bool
	Sizes <-chan Size
}

// ExitError is the error of a command with a non-zero exit code.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return "command terminated with exit code " + strconv.Itoa(e.Code)
}

// Run returns when the command has ended and all of its output is written, or ctx is
// done. It closes conn.
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

func (c *Command) run(conn *Conn) error {
	s, err := c.open(conn)
	if err != nil {
		return err
	}
	if c.Stdin != nil {
		go copyInput(c.Stdin, s[v1.StreamTypeStdin])
	}
	var out outputCopies
	if c.Stdout != nil {
		out.start(conn, c.Stdout, s[v1.StreamTypeStdout])
	}
	if c.Stderr != nil {
		out.start(conn, c.Stderr, s[v1.StreamTypeStderr])
	}
	if c.TTY {
		done := make(chan struct{})
		var resizing sync.WaitGroup
		resizing.Go(func() { resize(s[v1.StreamTypeResize], c.Sizes, done) })
		defer resizing.Wait()
		defer conn.Close() // unblocks a write
		defer close(done)
	}
	text, err := io.ReadAll(io.LimitReader(s[v1.StreamTypeError], maxMessage))
	if outputErr := out.wait(); outputErr != nil {
		return outputErr
	}
	return exitError(text, err)
}

// open opens all streams in the order that servers expect. Servers read only when all
// streams are open.
func (c *Command) open(conn *Conn) (map[string]httpstream.Stream, error) {
	all := map[string]httpstream.Stream{}
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
		if all[s.kind], err = conn.open(s.kind); err != nil {
			return nil, err
		}
	}
	// Closing fails if the command has already ended. Its output can still be read.
	_ = all[v1.StreamTypeError].Close()
	return all, nil
}

// copyInput copies a client's input and then closes the stream.
func copyInput(from io.Reader, to httpstream.Stream) {
	io.Copy(to, from) // an error means that the command reads no more
	to.Close()
}

// outputCopies copies the output streams of a command.
type outputCopies struct {
	group sync.WaitGroup
	mu    sync.Mutex // guards err
	err   error
}

// start copies until the end of from. If to cannot be written, it closes the connection.
func (c *outputCopies) start(conn *Conn, to io.Writer, from io.Reader) {
	c.group.Go(func() {
		w := &sink{to: to}
		io.Copy(w, from) // the error stream reports how the command ended
		if w.err != nil {
			c.mu.Lock()
			c.err = errors.Join(c.err, fmt.Errorf("writing the output of the command: %w", w.err))
			c.mu.Unlock()
			conn.Close()
		}
	})
}

// wait returns when all streams are copied.
func (c *outputCopies) wait() error {
	c.group.Wait()
	return c.err
}

// A sink records the error of its writer.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.err = err
	return n, err
}

// resize sends every size until the channel is closed or done.
func resize(to io.Writer, sizes <-chan Size, done <-chan struct{}) {
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

// exitError decodes the error stream, a metav1.Status.
func exitError(text []byte, err error) error {
	if len(text) == 0 {
		return errConnectionClosed
	}
	var s metav1.Status
	if json.Unmarshal(text, &s) != nil {
		return errors.New(string(text)) // from servers that send no Status
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
		return fmt.Errorf("the command failed; the runtime reported no reason: %w", errors.Join(err, errConnectionClosed))
	}
	return errors.New(s.Message)
}
