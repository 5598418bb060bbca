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
	Failed      = 1   // the verb failed or found a problem
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

// With returns an error with which podd prints err, if it is not nil, and exits with code.
func With(code int, err error) error { return Error{code, err} }

// Error returns the message to print, or "" for none.
func (e Error) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error of With; may be nil.
func (e Error) Unwrap() error { return e.err }

// Code returns the exit code.
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
