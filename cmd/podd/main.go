// Command podd runs Kubernetes pods from manifest files and URLs directly on a CRI runtime,
// without an API server.
//
// The grammar of the command line is in cli.go. Each verb is a type with a Run method. Run
// receives the Streams and a context that is cancelled by SIGINT and SIGTERM. The verbs that
// connect to a running podd are in package internal/cli, and all other verbs are in package
// internal/offline. "podd run" is in package internal/daemon, and with --runonce in package
// internal/runonce.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/memory"
)

func main() {
	memory.ReduceHeapProfile()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal terminates podd immediately
	streams := iostreams.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	err := execute(ctx, os.Args, streams)
	stop()
	os.Exit(exit.Report(err, streams.Err))
}
