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

// Size is that of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// Command is a client's part in a command or container; which streams it has
// must be what the server was asked for.
type Command struct {
	// Stdin is passed on to its end; nil: there is none. Run does not wait for a
	// Read of it that blocks.
	Stdin          io.Reader
	Stdout, Stderr io.Writer // nil: not to be had
	// TTY says that the command has a terminal, so Stderr is nil. Sizes are the
	// terminal's, the first one included; nil: nobody knows. Whoever sends them
	// closes the channel when ctx is done.
	TTY   bool
	Sizes <-chan Size
}

// ExitError is that a command ended with another code than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return "command terminated with exit code " + strconv.Itoa(e.Code)
}

// Run returns when the command has ended and all of its output is written, or
// ctx is done. It closes conn.
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
		go pass(c.Stdin, s[v1.StreamTypeStdin])
	}
	var out copies
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
		defer conn.Close() // ends a write
		defer close(done)
	}
	text, err := io.ReadAll(io.LimitReader(s[v1.StreamTypeError], maxMessage))
	if failed := out.wait(); failed != nil {
		return failed
	}
	return ended(text, err)
}

// open opens all streams, in the order that servers know. They read none before
// all of them are there.
func (c *Command) open(conn *Conn) (map[string]httpstream.Stream, error) {
	all := map[string]httpstream.Stream{}
	for _, s := range []struct {
		kind string
		has  bool
	}{
		{v1.StreamTypeError, true}, {v1.StreamTypeStdin, c.Stdin != nil}, {v1.StreamTypeStdout, c.Stdout != nil},
		{v1.StreamTypeStderr, c.Stderr != nil}, {v1.StreamTypeResize, c.TTY},
	} {
		if !s.has {
			continue
		}
		var err error
		if all[s.kind], err = conn.open(s.kind); err != nil {
			return nil, err
		}
	}
	// Nothing is written to it. A command that has ended already has taken the
	// connection with it, and what it said is still to be read.
	_ = all[v1.StreamTypeError].Close()
	return all, nil
}

// pass copies a client's input, and then tells that this was all.
func pass(from io.Reader, to httpstream.Stream) {
	io.Copy(to, from) // a command that reads no more is no error
	to.Close()
}

// copies are of a command's output.
type copies struct {
	group  sync.WaitGroup
	mu     sync.Mutex // guards failed
	failed error
}

// start copies until the end. When the output cannot be written any more, the
// connection ends.
func (c *copies) start(conn *Conn, to io.Writer, from io.Reader) {
	c.group.Go(func() {
		w := &sink{to: to}
		io.Copy(w, from) // how reading ends is told by the stream of the end
		if w.err != nil {
			c.mu.Lock()
			c.failed = errors.Join(c.failed, fmt.Errorf("writing what the command wrote: %w", w.err))
			c.mu.Unlock()
			conn.Close()
		}
	})
}

func (c *copies) wait() error {
	c.group.Wait()
	return c.failed
}

// sink remembers why its writer failed.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.err = err
	return n, err
}

// resize tells of every size until there are no more, or done.
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

// ended is what a server says of the end, a metav1.Status.
func ended(text []byte, err error) error {
	if len(text) == 0 {
		return errCut
	}
	var s metav1.Status
	if json.Unmarshal(text, &s) != nil {
		return errors.New(string(text)) // of servers older than Status
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
		return fmt.Errorf("the command failed, and the runtime does not say why: %w", errors.Join(err, errCut))
	}
	return errors.New(s.Message)
}
