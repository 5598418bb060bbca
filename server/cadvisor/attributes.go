package cadvisor

import (
	"context"
	"runtime/debug"

	"github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/model"
)

// attributes describe the hardware and the software of the node.
type attributes struct {
	*model.MachineInfo
	model.VersionInfo
}

func queryAttributes(ctx context.Context, m Meter, _ request) (any, error) {
	hardware, err := m.Machine(ctx)
	if err != nil {
		return nil, err
	}
	return attributes{hardware, model.VersionInfo{
		KernelVersion: machine.KernelVersion(), ContainerOsVersion: machine.ContainerOsVersion(), CadvisorVersion: libraryVersion(),
	}}, nil
}

func queryVersion(context.Context, Meter, request) (any, error) { return libraryVersion(), nil }

// libraryVersion returns the version of cAdvisor's library, with which podd measures, or "" if it is
// unknown. The library has the version numbers of cAdvisor.
func libraryVersion() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range build.Deps {
		if m.Path == "github.com/google/cadvisor/lib" {
			return m.Version
		}
	}
	return ""
}
