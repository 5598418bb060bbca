// Package wiring connects the daemon and runs to completion to the container runtime and
// the disk.
package wiring

import (
	"path/filepath"
	goruntime "runtime"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/cgroup"
	"podd/reconcile/collect"
	"podd/reconcile/effect"
	"podd/reconcile/node"
	"podd/reconcile/pull"
	"podd/reconcile/pull/provider"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/csi"
	"podd/runtime/cri"
	"podd/runtime/shim"
)

// NewEffects returns the effects of the pods in the root directory root.
func NewEffects(cfg *config.Config, root string, client *cri.Client, renderNode render.Node, drivers *csi.Drivers) *effect.Runner {
	credentials := filepath.Join(cfg.RootDir, "config.json")
	return &effect.Runner{
		Runtime: client,
		Images: pull.New(pull.Options{
			Runtime: client, Credentials: pull.File(credentials), CredentialsIn: credentials,
			Providers: provider.New(cfg.CredentialProviderDir, cfg.CredentialProviders).Credentials,
			Parallel:  cfg.ParallelPulls, QPS: cfg.PullQPS, Burst: cfg.PullBurst,
			UsePresent: cfg.PullOffline == config.PullUsePresent,
		}),
		Disk:      volume.Dir{Root: rootdir.Pods(root), Memory: renderNode.Capacity.Memory, Claims: rootdir.Claims(cfg.RootDir), CSI: drivers, Attempts: &volume.Attempts{}},
		Leftovers: Leftovers(cfg),
		KillShim:  shim.End, MakeCgroup: cgroup.Make, PodMemory: cgroup.Memory,
		DNS:     func() (render.DNS, error) { return host.ReadDNS(cfg.ResolvConf) },
		IsLocal: node.IsLocal,
		Gate:    effect.NewGate(parallelStarts(cfg)),
	}
}

// Leftovers returns the collector of logs and cgroups, which pods leave outside their
// directories.
func Leftovers(cfg *config.Config) collect.Leftovers {
	return collect.Leftovers{
		Logs:       collect.Logs{Dir: cfg.PodLogsDir, Links: filepath.Join(filepath.Dir(cfg.PodLogsDir), "containers"), Passes: &collect.Passes{}},
		CgroupRoot: cfg.CgroupRoot,
	}
}

// maxStarts limits the default of parallelStarts, because more starts only wait for locks in
// the kernel.
const maxStarts = 64

// parallelStarts returns how many pods may start at the same time. The default is more
// than the number of CPUs, because a start often waits for the runtime's programs and the
// disk: on two CPUs eight at once are 8 % faster than four, and get a larger share of the
// CPU time if other pods are busy.
func parallelStarts(cfg *config.Config) int {
	if cfg.ParallelStarts > 0 {
		return cfg.ParallelStarts
	}
	return min(4*goruntime.NumCPU(), maxStarts)
}
