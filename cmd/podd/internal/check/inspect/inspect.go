// Package inspect reads the Facts of package check from this host. It changes nothing, except that
// it opens each port of podd for a moment.
package inspect

import (
	"context"
	"os"
	"time"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
)

// Options are the options of Host.
type Options struct {
	// Config, Warnings and Err are the results of loading the configuration. Config is nil if the
	// configuration is invalid.
	Config   *config.Config
	Warnings []config.Warning
	Err      error
	// IsStarting is set if this process is a podd that fails to start.
	IsStarting bool
}

// Host reads the facts. If the runtime, a disk or a name server does not respond, Host returns
// after at most 20 seconds.
func Host(ctx context.Context, o Options) check.Facts {
	f := check.Facts{
		Config: o.Config, ConfigWarnings: o.Warnings, ConfigErr: o.Err,
		Privileges: readPrivileges(), Cgroups: readCgroups(), Kernel: readKernel(), Limits: readLimits(), Clock: readClock(time.Now()),
	}
	if o.Config == nil || f.Privileges.UID != 0 {
		return f
	}
	var images string
	f.Runtime, images = queryRuntime(ctx, o.Config)
	f.Network = readNetwork(f.Runtime.Settings)
	f.Directories = readDirectories(ctx, o.Config, images)
	f.Names = readNames(ctx, o.Config)
	f.Ports = openPorts(ctx, o.Config)
	f.Processes = readProcesses(ctx, o.Config, f.Ports)
	f.Processes.Own, f.Processes.IsStarting = os.Getpid(), o.IsStarting
	return f
}
