// Package exit defines the exit codes of podd and errors with an exit code.
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
	Failed      = 1   // the verb failed or has found a problem
	Usage       = 2   // the command line is invalid
	Timeout     = 124 // the timeout has passed, as with timeout(1)
	Internal    = 125 // podd itself failed; only with --runonce
	Interrupted = 130 // podd was stopped by SIGINT or SIGTERM
)

// An Error is an error with an exit code.
type Error struct {
	code int
	err  error // nil if podd prints no message
}

// NewError returns an error with an exit code. podd prints err and exits with code. If err is nil,
// podd prints nothing.
func NewError(code int, err error) error { return Error{code, err} }

// Error returns the message to print, or "" if podd prints nothing.
func (e Error) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error that was passed to NewError. It may be nil.
func (e Error) Unwrap() error { return e.err }

// Code returns the exit code that was passed to NewError.
func (e Error) Code() int { return e.code }

// Report prints err, the error of a verb, to w and returns the exit code. If err is nil, it prints
// nothing and returns 0. If err contains no exit code, the exit code is Failed. For
// context.Canceled, Report prints nothing and returns Interrupted.
func Report(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	code := Failed
	var exitErr interface{ Code() int }
	switch {
	case errors.As(err, &exitErr):
		code = exitErr.Code()
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	if message := err.Error(); message != "" {
		fmt.Fprintf(w, "podd: %s\n", message)
	}
	return code
}
