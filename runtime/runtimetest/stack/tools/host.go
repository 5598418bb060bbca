package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
)

// A requirement is a program or file that the stack needs on the host.
type requirement struct {
	packages  []string // the Debian packages that contain it
	isPresent func(context.Context) bool
}

// runRequirements, crioRequirements, buildRequirements, vmRequirements and browserPackages list all
// packages that may be installed into the system. None of them starts a service.
var runRequirements = []requirement{
	// The CNI plugins masquerade and forward host ports with nft.
	{[]string{"nftables"}, onPath("nft")},
}

var buildRequirements = []requirement{
	// runc contains C code, which sets up namespaces before Go's runtime starts.
	{[]string{"gcc", "libc6-dev"}, onPath("gcc")},
	// runc compiles seccomp profiles with libseccomp.
	{[]string{"pkg-config"}, onPath("pkg-config")},
	{[]string{"libseccomp-dev"}, func(ctx context.Context) bool {
		return exec.CommandContext(ctx, "pkg-config", "--exists", "libseccomp").Run() == nil
	}},
}

// onPath returns a function that reports whether program is on the PATH.
func onPath(program string) func(context.Context) bool {
	return func(context.Context) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
}

// prepareHost installs the Debian packages of the requirements that are not met on the host.
func prepareHost(ctx context.Context, log *slog.Logger, needs []requirement) error {
	var missingPackages []string
	for _, n := range needs {
		if !n.isPresent(ctx) {
			missingPackages = append(missingPackages, n.packages...)
		}
	}
	if len(missingPackages) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("preparing the host: missing Debian packages %s; run this command as root to install them", strings.Join(missingPackages, ", "))
	}
	log.Info("installing Debian packages", "packages", strings.Join(missingPackages, " "))
	return aptGetWithRetry(ctx, "/", append([]string{"install", "-y", "--no-install-recommends"}, missingPackages...)...)
}
