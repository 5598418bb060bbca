package main

import (
	"bytes"
	"context"
	"strings"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
)

// poddVerb runs podd with the arguments words and returns its output and exit code.
func poddVerb(ctx context.Context, words ...string) poddtest.Result {
	var out, stderr bytes.Buffer
	code := executeVerb(ctx, iostreams.Streams{In: strings.NewReader(""), Out: &out, Err: &stderr}, words...)
	return poddtest.Result{Out: out.String(), Err: stderr.String(), Code: code}
}

// executeVerb runs podd with the streams s and the arguments words. It returns the exit code.
func executeVerb(ctx context.Context, s iostreams.Streams, words ...string) int {
	return exit.Report(execute(ctx, append([]string{"podd"}, words...), s), s.Err)
}
