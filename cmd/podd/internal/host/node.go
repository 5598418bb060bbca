// Package host combines the configuration with the facts about the host (package node). It computes
// the properties of the node that pods depend on, such as the allocatable resources and the labels.
package host

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/cgroup"
	"podd/reconcile/device/allocation"
	"podd/reconcile/node"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/volume/selinux"
)

// NewRenderNode returns the properties of the node that determine the CRI configuration of pods. The
// field for DNS is not set, because podd reads the DNS configuration for each sandbox.
func NewRenderNode(cfg *config.Config, instance *reconcile.Instance, addresses node.Addresses, log *slog.Logger) (render.Node, error) {
	capacity, allocatable, err := ReadResources(cfg)
	if err != nil {
		return render.Node{}, err
	}
	facts, err := config.ReadHostFacts()
	if err != nil {
		return render.Node{}, err
	}
	var swap int64
	if cfg.EnableLimitedSwap {
		if swap, err = node.ReadMemInfo("SwapTotal"); err != nil {
			return render.Node{}, err
		}
	}
	cpus, err := node.OnlineCPUs()
	if err != nil {
		log.Warn("reading the CPUs that are online failed; podd keeps the CPUs of the cgroup of all pods and of the reserved cgroups", "err", err)
	}
	return render.Node{
		Name:        cfg.NodeName,
		HostIPs:     addresses.Strings(),
		Capacity:    capacity,
		Allocatable: allocatable, AllPodsLimit: podsLimit(&cfg.Resources, capacity),
		InstanceID: instance.ID, AdoptedInstanceIDs: instance.AdoptedIDs,
		LogsDir:            cfg.PodLogsDir,
		WithoutPodCgroups:  cfg.DisablePodCgroups,
		CgroupRoot:         cfg.CgroupRoot,
		CgroupDriver:       cfg.CgroupDriver,
		UsesCgroupV2:       facts.UsesCgroupV2,
		SupportsSwapLimits: facts.CanLimitSwap, SwapBytes: swap,
		MemoryQoS: render.MemoryQoS{
			ReservesRequests: cfg.ReserveMemoryRequests, ThrottlingFactor: cfg.MemoryThrottlingFactor,
			UnreservedMemory: subtractReserved(capacity, cfg.Reserved).Memory,
		},
		SingleProcessOOMKill: cfg.SingleProcessOOMKill,
		CPUQuota:             render.CPUQuota{IsDisabled: cfg.DisableCPUQuota, Period: cfg.CPUQuotaPeriod},
		CPUs:                 cpus,
		PageSize:             int64(os.Getpagesize()),
		PodPIDsLimit:         cfg.PodPidsLimit, HugePageSizes: cgroup.HugePageSizes(),
		SELinuxEnabled: node.SELinuxEnabled("/"),
		ClusterDNS:     cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain,
		RuntimeClasses: cfg.RuntimeClasses, DefaultSysctls: cfg.DefaultSysctls,
		SeccompDefault: cfg.SeccompDefault, SeccompDir: filepath.Join(cfg.RootDir, "seccomp"),
	}, nil
}

// NewSELinuxPolicy returns the rules for the SELinux labels of volumes.
func NewSELinuxPolicy(cfg *config.Config) selinux.Policy {
	p := selinux.Policy{OnlySinglePod: cfg.SELinuxMountOnlySinglePod}
	p.Process, p.File = node.ContainerLabels("/")
	return p
}

// AdmissionLimits returns the resources and features of the node that admission compares with the
// requests of pods. The maximum number of pods depends on capacity if podsPerCore is set.
func AdmissionLimits(cfg *config.Config, capacity, allocatable render.Resources) admission.Limits {
	amounts := admission.Amounts{v1.ResourceCPU: allocatable.MilliCPU, v1.ResourceMemory: allocatable.Memory}
	if allocatable.EphemeralStorage > 0 {
		amounts[v1.ResourceEphemeralStorage] = allocatable.EphemeralStorage
	}
	maps.Copy(amounts, node.ReadHugePages())
	pods, flags := maxPods(&cfg.Node, capacity)
	return admission.Limits{
		MaxPods: pods, NoPods: pods == 0, MaxPodsFlags: flags,
		Allocatable: amounts, Devices: map[v1.ResourceName]allocation.Count{}, Features: admissionFeatures(cfg), IDsPerPod: cfg.IDsPerPod,
	}
}

// maxPods returns the maximum number of pods on the node: the lower of maxPods and podsPerCore for
// each CPU. It also returns the flags that determine this number, for messages.
func maxPods(cfg *config.Node, capacity render.Resources) (number int, flags string) {
	perCore := int64(cfg.PodsPerCore) * capacity.MilliCPU / 1000
	switch {
	case cfg.PodsPerCore == 0 || perCore > int64(cfg.MaxPods):
		return cfg.MaxPods, "--max-pods"
	case perCore == int64(cfg.MaxPods):
		return cfg.MaxPods, "--max-pods and --pods-per-core"
	}
	return int(perCore), "--pods-per-core"
}

// DeadContainerPolicy returns the policy that decides how many exited containers of a pod remain.
func DeadContainerPolicy(cfg *config.Runtime) plan.DeadContainerPolicy {
	p := plan.DeadContainerPolicy{MinAge: cfg.MinDeadContainerAge, Extra: cfg.MaxDeadPerContainer - 1}
	if cfg.MaxDeadPerContainer < 0 {
		p.Extra = -1
	}
	return p
}

// admissionFeatures returns the features of the node that the admission of pods depends on. The
// fields for features of the runtime are not set.
func admissionFeatures(cfg *config.Config) admission.Features {
	return admission.Features{
		AllowedUnsafeSysctls: cfg.UnsafeSysctls, KernelRelease: KernelRelease(), RuntimeClasses: cfg.RuntimeClasses, Labels: NodeLabels(&cfg.Node),
		HasAppArmor:       isAppArmorEnabled("/sys/module/apparmor/parameters/enabled"),
		WithoutPodCgroups: cfg.DisablePodCgroups,
	}
}

// NewAddressWatcher returns a watcher of the addresses of the node. If the user has not set the
// addresses and the node is in a cluster, the first address is the address to which the node name
// resolves, as in the kubelet. If the watcher finds an address by a route or by the node name, it
// stores the address in file for the next start. If file is "", it stores no address.
func NewAddressWatcher(cfg *config.Config, file string, log *slog.Logger) *node.AddressWatcher {
	o := node.AddressOptions{NodeIPs: cfg.NodeIPs, File: file, Log: log}
	if cfg.Cluster.Kubeconfig != "" && len(cfg.NodeIPs) == 0 {
		o.Name = cfg.NodeName
	}
	return node.NewAddressWatcher(context.Background(), o)
}

// isAppArmorEnabled reports whether the kernel enforces AppArmor profiles. path is
// /sys/module/apparmor/parameters/enabled.
func isAppArmorEnabled(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.HasPrefix(string(text), "Y")
}

// NodeLabels returns the labels of the node: the standard labels and those of --node-labels, which
// override standard labels.
func NodeLabels(cfg *config.Node) map[string]string {
	labels := map[string]string{
		v1.LabelHostname: cfg.NodeName, v1.LabelOSStable: runtime.GOOS, v1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": runtime.GOOS, "beta.kubernetes.io/arch": runtime.GOARCH,
	}
	maps.Copy(labels, cfg.NodeLabels)
	return labels
}
