// Command podd runs Kubernetes pods from manifest files and URLs straight on a
// CRI runtime, without an apiserver.
//
// The grammar of the command line is in cli.go and grammar.go; each verb has a
// file of its own with a Run method, which gets a context that ends on SIGINT and
// SIGTERM, and the Streams.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	noteLess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what hangs, at once
	streams := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	err := execute(ctx, os.Args, streams)
	stop()
	os.Exit(report(err, streams))
}
