// Command stack starts and removes a private container runtime to try podd: containerd, runc
// and CNI plugins that share nothing with other runtimes of the host. `make run` and `make
// stop` call it. `make vm` calls it to run tests in a virtual machine.
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
	Run        runCmd        `cmd:"" help:"Build podd, start the runtime and run podd on it."`
	Up         upCmd         `cmd:"" help:"Build missing programs and start a runtime that keeps running."`
	Down       downCmd       `cmd:"" help:"Remove the runtime and everything that it has created."`
	Tools      buildCmd      `cmd:"" help:"Build the runtime and the test images, and start nothing."`
	Kubernetes kubernetesCmd `cmd:"" help:"Build the programs of Kubernetes that tests need: the control plane, a kubelet and the conformance suite."`
	VM         vmCmd         `cmd:"" name:"vm" help:"Run the tests that need a separate system in a virtual machine."`
}

func main() {
	log.SetFlags(0) // no timestamps; the log contains slow steps and changes of the host
	log.SetPrefix("stack: ")
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	command := kong.Parse(&grammar, kong.Name("stack"), kong.Description("Run podd on a separate container runtime that does not affect the one of the host."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err := command.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "stack: %v\n", err)
		stop()
		os.Exit(1)
	}
}
