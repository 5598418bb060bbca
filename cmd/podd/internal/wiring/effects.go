// Package wiring connects pods to the container runtime and the disk. It contains the parts
// that the daemon and "podd run --runonce" share.
package wiring

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/cgroup"
	"podd/reconcile/collect"
	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/eviction"
	"podd/reconcile/gc"
	"podd/reconcile/gc/containers"
	"podd/reconcile/node"
	"podd/reconcile/pull"
	"podd/reconcile/pull/provider"
	"podd/reconcile/pull/record"
	"podd/reconcile/pull/verify"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/csi"
	"podd/runtime/cri"
	"podd/runtime/shim"
)

// EffectOptions configures NewEffects.
type EffectOptions struct {
	Config *config.Config
	// Root is the root directory of the pods. With --runonce it is not Config.RootDir, because
	// each run has its own root directory.
	Root           string
	Runtime        *cri.Client
	Node           render.Node
	LogsAndCgroups effect.LogsAndCgroups
	// CSI contains the CSI drivers; nil means that pods have no CSI volumes.
	CSI *csi.Drivers
	// Devices allocates the devices of device plugins; nil means that there are no devices.
	Devices effect.Devices
	// CreateCgroup creates the cgroup of a pod and sets its limits.
	CreateCgroup func(render.Cgroup) error
	// OnVolumeOperation is volume.Dir.OnOperation.
	OnVolumeOperation func(volume.Operation)
	// OnVolumeLabel is volume.Dir.OnLabel.
	OnVolumeLabel func(volume.LabelResult)
	// OnGroupProgress is volume.Dir.OnGroupProgress.
	OnGroupProgress func(volume.GroupProgress)
	// OnOutcome receives the outcome of every effect and must not block. It may be nil.
	OnOutcome func(effect.Outcome)
	// ServiceAccounts provides the service accounts and tokens for credential providers; nil without a
	// cluster.
	ServiceAccounts provider.ServiceAccounts
	// OnProviderRun is provider.Options.OnRun.
	OnProviderRun func(provider.Run)
	// PullRecords is pull.Options.Records; see OpenPullRecords.
	PullRecords *record.Store
	// OnEnsureImage is pull.Options.OnEnsure, and OnVerifyImage is pull.Options.OnVerify.
	OnEnsureImage func(pull.Check)
	OnVerifyImage func(verify.Result)
	Log           *slog.Logger
}

// NewEffects returns the runner of effects for the pods in a root directory.
func NewEffects(o EffectOptions) *effect.Runner {
	cfg := o.Config
	e := &effect.Runner{
		Runtime:        o.Runtime,
		Images:         newPuller(o),
		Disk:           volume.Dir{Root: rootdir.PodsPath(o.Root), MemoryVolumeLimit: o.Node.Capacity.Memory, ClaimsDir: rootdir.ClaimsPath(cfg.RootDir), CSI: o.CSI, SELinux: host.NewSELinuxPolicy(cfg), CallLimiter: &volume.CallLimiter{}, OnOperation: o.OnVolumeOperation, OnLabel: o.OnVolumeLabel, OnGroupProgress: o.OnGroupProgress},
		LogsAndCgroups: o.LogsAndCgroups, Devices: o.Devices,
		KillShim: shim.Kill, MakeCgroup: o.CreateCgroup, ReadCgroup: cgroup.ReadLimits, MeasureCgroupMemory: cgroup.MeasureMemory,
		UnkillableProcesses: func(uid types.UID) []string { return cgroup.UnkillableProcesses(cfg.CgroupRoot, uid) },
		KillContainers: func(ctx context.Context, uid types.UID, ids []string, wereFound bool) (found bool, err error) {
			return cgroup.KillContainers(ctx, cfg.CgroupRoot, uid, ids, wereFound)
		},
		DNS:              func() (render.DNS, error) { return node.ReadDNS(cfg.ResolvConf) },
		IsLocal:          node.IsLocal,
		Gate:             newGate(cfg.MaxParallelStarts),
		KeepsEarlierLogs: host.DeadContainerPolicy(&cfg.Runtime).RetainsMore(),
		OnDone:           o.OnOutcome,
	}
	if cfg.DisablePodCgroups {
		e.MakeCgroup, e.MeasureCgroupMemory, e.KillContainers = nil, nil, nil
	}
	return e
}

// newPuller returns the Puller of the images of pods.
func newPuller(o EffectOptions) *pull.Puller {
	cfg := o.Config
	files := credentialFiles(cfg)
	p := pull.Options{
		Runtime: o.Runtime, Credentials: files.Credentials, CredentialFiles: files,
		Providers:   provider.New(provider.Options{Dir: cfg.CredentialProviderDir, Providers: cfg.CredentialProviders, Accounts: o.ServiceAccounts, OnRun: o.OnProviderRun}),
		MaxParallel: cfg.MaxParallelPulls, QPS: cfg.PullQPS, Burst: cfg.PullBurst,
		UsePresentIfUnreachable: cfg.OfflinePullPolicy == config.PullUsePresent,
		Records:                 o.PullRecords, OnEnsure: o.OnEnsureImage, OnVerify: o.OnVerifyImage, Log: o.Log,
	}
	if cfg.CredentialVerification != nil {
		p.VerificationPolicy = *cfg.CredentialVerification
	}
	return pull.New(p)
}

// credentialFiles returns the files that may contain registry credentials. podd searches the working
// directory only if it replaces a kubelet, because a config.json in a user's directory is often the
// configuration of another program.
func credentialFiles(cfg *config.Config) pull.CredentialFiles {
	workDir := ""
	if cfg.ActsAsKubelet {
		workDir, _ = os.Getwd() // "" after an error, for example if the directory was removed
	}
	return pull.NewCredentialFiles(cfg.RootDir, workDir, os.Getenv("HOME"))
}

// OpenPullRecords returns the store of the credentials of image pulls, or nil if credentials are not
// verified. The daemon and "podd run --runonce" share the directory of the store.
func OpenPullRecords(cfg *config.Config) *record.Store {
	if cfg.CredentialVerification == nil {
		return nil
	}
	return record.New(cfg.RootDir)
}

// NewLogsAndCgroups returns the collector that removes the logs and cgroups of deleted pods. They
// must be removed separately, because they are not in the directories of the pods. If
// onCgroupRemoved is not nil, it is called with the duration of each removal of a cgroup.
func NewLogsAndCgroups(cfg *config.Config, onCgroupRemoved func(took time.Duration)) collect.LogsAndCgroups {
	return collect.LogsAndCgroups{Logs: NewLogs(cfg), CgroupRoot: cfg.CgroupRoot, OnCgroupRemoved: onCgroupRemoved}
}

// NewLogs returns the collector that removes the logs of pods.
func NewLogs(cfg *config.Config) collect.Logs {
	return collect.Logs{Dir: cfg.PodLogsDir, LinkDir: filepath.Join(filepath.Dir(cfg.PodLogsDir), "containers"), Batcher: &collect.RemovalBatcher{}}
}

// NewContainerCollector returns the collector that limits the number of dead containers of all
// pods in reports: exited ones, and created ones that were not started. record and tracer may be nil.
func NewContainerCollector(cfg *config.Runtime, client *cri.Client, reports *eviction.ReportCache, record func([]event.Event), tracer trace.Tracer, log *slog.Logger) *containers.Collector {
	return containers.New(containers.Options{
		Policy:  gc.ContainerPolicy{Max: cfg.MaxDeadContainers, MinAge: cfg.MinDeadContainerAge},
		Reports: reports.All, Runtime: client, Record: record, Tracer: tracer, Log: log,
	})
}

// maxParallelStarts is the highest limit that newGate permits an adaptive Gate, because more parallel
// starts would only wait for locks in the kernel.
const maxParallelStarts = 64

// newGate returns the Gate for the maximum number of pods that start in parallel. If maximum is 0, the
// Gate finds the best number itself. It begins above the number of CPUs, because a start often waits
// for the programs of the runtime and for the disk.
func newGate(maximum int) *effect.Gate {
	if maximum > 0 {
		return effect.NewGate(maximum)
	}
	return effect.NewAdaptiveGate(min(4*goruntime.NumCPU(), maxParallelStarts), maxParallelStarts)
}
