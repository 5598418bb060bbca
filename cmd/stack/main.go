// Command stack starts and removes a private container runtime for trying podd out:
// containerd, runc and CNI plugins that share nothing with another runtime of the host.
// `make run` and `make stop` call it. `make vm` calls it to run tests in a virtual machine.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"
)

var grammar struct {
	Run        run        `cmd:"" help:"Build podd, bring the runtime up and run podd on it."`
	Up         up         `cmd:"" help:"Build what is missing and start a runtime that outlives this command."`
	Down       down       `cmd:"" help:"Remove the runtime and everything it made."`
	Tools      build      `cmd:"" help:"Only build the runtime and the test images."`
	Kubernetes kubernetes `cmd:"" help:"Only build the programs of Kubernetes that tests run."`
	VM         virtual    `cmd:"" name:"vm" help:"Run the tests that need a machine of their own in a virtual one."`
}

func main() {
	log.SetFlags(0) // slow and system-wide steps are told about on standard error
	log.SetPrefix("stack: ")
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	command := kong.Parse(&grammar, kong.Name("stack"), kong.Description("A private container runtime for podd."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err := command.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "stack: %v\n", err)
		stop()
		os.Exit(1)
	}
}
