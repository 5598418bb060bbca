package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"podd/cmd/podd/internal/stream"
)

// giveTerminal makes the user's terminal that of a command: it passes every key
// on, ^C too, and tells its size. Where the input is none the command gets none
// either, as with kubectl. restore makes it the user's again; it is to be called
// before anything is printed.
func giveTerminal(ctx context.Context, c *stream.Command, s Streams, quiet bool) (restore func(), err error) {
	in, ok := s.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		if !quiet {
			fmt.Fprintln(s.Err, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
		return func() {}, nil
	}
	c.TTY, c.Stderr = true, nil // a terminal has one output
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	sizes := make(chan stream.Size, 1)
	c.Sizes = sizes
	shown := in
	if out, ok := s.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		shown = out
	}
	telling.Go(func() { tellSizes(ctx, shown, sizes) })
	end := func() { cancel(); telling.Wait() }
	if c.Stdin == nil {
		return end, nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		end()
		return nil, fmt.Errorf("taking over the terminal: %w", err)
	}
	return func() {
		end()
		term.Restore(int(in.Fd()), before) // there is no other way to mend it
	}, nil
}

// tellSizes sends the terminal's size, and every other that it gets, until ctx
// is done.
func tellSizes(ctx context.Context, of *os.File, to chan<- stream.Size) {
	defer close(to)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if width, height, err := term.GetSize(int(of.Fd())); err == nil && width > 0 && height > 0 {
			select {
			case to <- stream.Size{Width: uint16(width), Height: uint16(height)}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
