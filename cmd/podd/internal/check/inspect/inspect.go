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

// Options are the options of ReadFacts.
type Options struct {
	// Config, ConfigWarnings and ConfigErr are the results of loading the configuration. Config is
	// nil if the configuration is invalid.
	Config         *config.Config
	ConfigWarnings []config.Warning
	ConfigErr      error
	// IsStarting is set if this process is a daemon that failed to start.
	IsStarting bool
}

// ReadFacts reads the facts. If the runtime, a disk or a name server does not respond, ReadFacts
// returns after at most 20 seconds.
func ReadFacts(ctx context.Context, o Options) check.Facts {
	facts, _ := config.ReadHostFacts() // the facts are zero after an error
	f := check.Facts{
		Config: o.Config, ConfigWarnings: o.ConfigWarnings, ConfigErr: o.ConfigErr,
		Privileges: readPrivileges(), Cgroups: readCgroups(facts), Kernel: readKernel(facts), Limits: readLimits(), Clock: readClock(time.Now()),
	}
	if o.Config == nil || f.Privileges.UID != 0 {
		return f
	}
	var images string
	f.Runtime, images = queryRuntime(ctx, o.Config)
	f.Network = readNetwork(f.Runtime.Settings, pluginDirs)
	f.Directories = readDirectories(ctx, &o.Config.Paths, images)
	f.NameResolution = readNameResolution(ctx, o.Config)
	f.Ports = tryPorts(ctx, &o.Config.Server)
	f.Processes = readProcesses(ctx, o.Config, f.Ports)
	f.Processes.OwnPID, f.Processes.IsStarting = os.Getpid(), o.IsStarting
	return f
}
