package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/stream"
)

// attachTerminal connects the terminal of the user to a command. It sends the size of the terminal
// to the command. If c.Stdin is set, the command also receives every key, including Ctrl-C. If the
// input of the user is not a terminal, the command gets no terminal, as with kubectl. The caller
// must call the returned function restore before it prints anything.
func attachTerminal(ctx context.Context, c *stream.Command, s iostreams.Streams, quiet bool) (restore func(), err error) {
	in, ok := s.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		if !quiet {
			fmt.Fprintln(s.Err, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
		return func() {}, nil
	}
	c.TTY, c.Stderr = true, nil // a terminal has no separate stderr
	ctx, cancel := context.WithCancel(ctx)
	var sender sync.WaitGroup
	sizes := make(chan stream.Size, 1)
	c.Sizes = sizes
	terminal := in
	if out, ok := s.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		terminal = out
	}
	sender.Go(func() { sendSizes(ctx, terminal, sizes) })
	end := func() { cancel(); sender.Wait() }
	if c.Stdin == nil {
		return end, nil
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		end()
		return nil, fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	return func() {
		end()
		term.Restore(int(in.Fd()), state) // the error is ignored, because the command has ended
	}, nil
}

// sendSizes sends the size of the terminal at the start and after every change until ctx is
// done.
func sendSizes(ctx context.Context, terminal *os.File, to chan<- stream.Size) {
	defer close(to)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		if width, height, err := term.GetSize(int(terminal.Fd())); err == nil && width > 0 && height > 0 {
			select {
			case to <- stream.Size{Width: uint16(width), Height: uint16(height)}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-resized:
		case <-ctx.Done():
			return
		}
	}
}
