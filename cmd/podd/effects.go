package main

import (
	"path/filepath"
	goruntime "runtime"

	"podd/cmd/podd/internal/config"
	"podd/reconcile"
	"podd/reconcile/cgroup"
	"podd/reconcile/collect"
	"podd/reconcile/pull"
	"podd/reconcile/pull/provider"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/csi"
	"podd/runtime/cri"
	"podd/runtime/shim"
)

// newEffects does what plans say with the pods of one root directory.
func newEffects(cfg *config.Config, root string, client *cri.Client, node render.Node, drivers *csi.Drivers) *reconcile.Effects {
	credentials := filepath.Join(cfg.RootDir, "config.json")
	return &reconcile.Effects{
		Runtime: client,
		Images: pull.New(pull.Options{
			Runtime: client, Credentials: pull.File(credentials), CredentialsIn: credentials,
			Providers: provider.New(cfg.CredentialProviderDir, cfg.CredentialProviders).Credentials,
			Parallel:  cfg.ParallelPulls, QPS: cfg.PullQPS, Burst: cfg.PullBurst,
			UsePresent: cfg.PullOffline == config.PullUsePresent,
		}),
		Disk:      volume.Dir{Root: podsDir(root), Memory: node.Capacity.Memory, Claims: claimsDir(cfg), CSI: drivers, Attempts: &volume.Attempts{}},
		Leftovers: leftovers(cfg),
		EndShim:   shim.End, MakeCgroup: cgroup.Make,
		DNS:  func() (render.DNS, error) { return readDNS(cfg.ResolvConf) },
		Gate: reconcile.NewGate(parallelStarts(cfg)),
	}
}

// leftovers are those of pods beside their directories.
func leftovers(cfg *config.Config) collect.Leftovers {
	return collect.Leftovers{
		Logs:       collect.Logs{Dir: cfg.PodLogsDir, Links: filepath.Join(filepath.Dir(cfg.PodLogsDir), "containers")},
		CgroupRoot: cfg.CgroupRoot,
	}
}

// mostStarts is where more at once only wait for the kernel's own locks.
const mostStarts = 64

// parallelStarts: a start is in part waiting, for the runtime's programs and
// the disk. On two cores eight at once are 8 % faster than four, and beside busy
// pods they get more of the processor.
func parallelStarts(cfg *config.Config) int {
	if cfg.ParallelStarts > 0 {
		return cfg.ParallelStarts
	}
	return min(4*goruntime.NumCPU(), mostStarts)
}
