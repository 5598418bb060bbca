package main

import (
	"errors"
	"testing"
)

// TestNewExitError checks that the error contains the last five lines of the log and the commands
// with which the user can continue.
func TestNewExitError(t *testing.T) {
	const next = "\nits pods keep running. \"make run\" starts podd again and adopts the pods, \"make stop\" removes everything"
	for want, err := range map[string]error{
		"podd exited (signal: killed); its log .run/podd.log ends with:\n2\n3\n4\n5\n6" + next: errors.New("signal: killed"),
		"podd exited (exit status 0); its log .run/podd.log ends with:\n2\n3\n4\n5\n6" + next:  nil,
	} {
		if got := newExitError(err, ".run/podd.log", []byte("1\n2\n3\n4\n5\n6\n")).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
