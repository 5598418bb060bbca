// Package exit defines the exit codes of podd and the errors that have one.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Exit codes of podd other than those of containers.
const (
	Failed      = 1   // the verb failed, or found a problem
	Usage       = 2   // usage error
	Timeout     = 124 // as timeout(1)
	Internal    = 125 // --runonce: podd itself failed
	Interrupted = 130 // ended by SIGINT or SIGTERM
)

// An Error is an error with the exit code of podd.
type Error struct {
	code int
	err  error // nil: nothing is printed
}

// With returns an error that makes podd print err, if it is not nil, and exit with
// code.
func With(code int, err error) error { return Error{code, err} }

// Error returns "" if nothing is to be printed.
func (c Error) Error() string {
	if c.err == nil {
		return ""
	}
	return c.err.Error()
}

func (c Error) Unwrap() error { return c.err }

// Code returns the exit code.
func (c Error) Code() int { return c.code }

// Report prints the error of a verb to w and returns its exit code.
func Report(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	code := Failed
	var c interface{ Code() int }
	switch {
	case errors.As(err, &c):
		code = c.Code()
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(w, "podd: %s\n", text)
	}
	return code
}
