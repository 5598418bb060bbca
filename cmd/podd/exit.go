package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Streams are what a verb reads and writes: Out is data, Err is talk. Bound
// for every Run method.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Codes that podd leaves with, beside those of containers.
const (
	codeFailed      = 1   // the verb found or did something wrong
	codeUsage       = 2   // the command line cannot be understood
	codeTimeout     = 124 // as timeout(1)
	codeOwn         = 125 // --runonce: podd's own failure, no container's
	codeInterrupted = 130 // ended by SIGINT or SIGTERM before it was done
)

// coded is an error with the code that podd leaves with.
type coded struct {
	code int
	err  error // nil: everything was said already
}

// exitWith makes podd leave with code after printing err; nil prints nothing.
func exitWith(code int, err error) error { return coded{code, err} }

// Error is "" when there is nothing left to say.
func (c coded) Error() string {
	if c.err == nil {
		return ""
	}
	return c.err.Error()
}

func (c coded) Unwrap() error { return c.err }

// Code is the code to leave with.
func (c coded) Code() int { return c.code }

// report prints what a verb returned as one line and gives the code for it.
func report(err error, s Streams) int {
	if err == nil {
		return 0
	}
	code := codeFailed
	var c interface{ Code() int }
	switch {
	case errors.As(err, &c):
		code = c.Code()
	case errors.Is(err, context.Canceled):
		return codeInterrupted
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(s.Err, "podd: %s\n", text)
	}
	return code
}
