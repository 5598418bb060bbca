// Package exit defines the exit codes of podd and the errors that have one.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Exit codes of podd. With --runonce and podd exec, podd may also exit with the code of a
// container.
const (
	Failed      = 1   // the verb failed, or found a problem
	Usage       = 2   // usage error
	Timeout     = 124 // like timeout(1)
	Internal    = 125 // with --runonce: podd itself failed
	Interrupted = 130 // stopped by SIGINT or SIGTERM
)

// An Error is an error with an exit code.
type Error struct {
	code int
	err  error // nil: nothing is printed
}

// With returns an error that makes podd print err and exit with code. If err is nil, podd
// prints nothing.
func With(code int, err error) error { return Error{code, err} }

// Error returns the message to print, or "" for none.
func (e Error) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error that was passed to With. It may be nil.
func (e Error) Unwrap() error { return e.err }

// Report prints err, the error of a verb, to w and returns the exit code. If err is nil, it
// prints nothing and returns 0. The code of an error without one is Failed.
func (e Error) Code() int { return e.code }

// Report prints the error of a verb, which may be nil, to w and returns the exit code. An
// error without a code has Failed.
func Report(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	code := Failed
	var coded interface{ Code() int }
	switch {
	case errors.As(err, &coded):
		code = coded.Code()
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	if message := err.Error(); message != "" {
		fmt.Fprintf(w, "podd: %s\n", message)
	}
	return code
}
