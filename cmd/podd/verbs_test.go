package main

import (
	"bytes"
	"context"
	"strings"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
)

// poddVerb runs a verb and returns what it prints.
func poddVerb(ctx context.Context, words ...string) poddtest.Result {
	var out, talk bytes.Buffer
	code := executeVerb(ctx, iostreams.Streams{In: strings.NewReader(""), Out: &out, Err: &talk}, words...)
	return poddtest.Result{Out: out.String(), Err: talk.String(), Code: code}
}

// executeVerb runs a verb and returns its exit code.
func executeVerb(ctx context.Context, s iostreams.Streams, words ...string) int {
	return exit.Report(execute(ctx, append([]string{"podd"}, words...), s), s.Err)
}
