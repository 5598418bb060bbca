// Package host reads the properties of the host, such as its capacity, DNS and addresses. With
// the configuration, it computes the properties of the node that pods depend on, such as the
// allocatable resources and the labels.
package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/cmd/podd/internal/config"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/cgroup"
	"podd/reconcile/device/allocation"
	"podd/reconcile/node"
	"podd/reconcile/plan"
	"podd/reconcile/render"
)

// NewRenderNode returns the properties of the node that determine the CRI configuration of pods. The
// field for DNS is not set, because podd reads the DNS configuration for each sandbox.
func NewRenderNode(cfg *config.Config, instance *reconcile.Instance, addresses node.Addresses) (render.Node, error) {
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
		if swap, err = ReadMemInfo("/proc/meminfo", "SwapTotal"); err != nil {
			return render.Node{}, err
		}
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
		MemoryQoS:            render.MemoryQoS{ReservesRequests: cfg.ReserveMemoryRequests, ThrottlingFactor: cfg.MemoryThrottlingFactor},
		SingleProcessOOMKill: cfg.SingleProcessOOMKill,
		CPUQuota:             render.CPUQuota{IsDisabled: cfg.DisableCPUQuota, Period: cfg.CPUQuotaPeriod},
		PageSize:             int64(os.Getpagesize()),
		PodPIDsLimit:         cfg.PodPidsLimit, HugePageSizes: cgroup.HugePageSizes(),
		SELinuxEnabled: facts.SELinuxEnabled,
		ClusterDNS:     cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain,
		RuntimeClasses: cfg.RuntimeClasses, DefaultSysctls: cfg.DefaultSysctls,
		SeccompDefault: cfg.SeccompDefault, SeccompDir: filepath.Join(cfg.RootDir, "seccomp"),
	}, nil
}

// ReadHugePages returns the total size in bytes of all huge pages of each page size. The keys are
// resource names, such as hugepages-2Mi. dir is /sys/kernel/mm/hugepages.
func ReadHugePages(dir string) admission.Amounts {
	all := admission.Amounts{}
	sizes, _ := os.ReadDir(dir) // if dir does not exist, there are no huge pages
	for _, e := range sizes {
		kib, sizeErr := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB"), 10, 64)
		text, readErr := os.ReadFile(filepath.Join(dir, e.Name(), "nr_hugepages"))
		n, countErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if sizeErr != nil || readErr != nil || countErr != nil {
			continue
		}
		size := resource.NewQuantity(kib<<10, resource.BinarySI)
		all[v1.ResourceName(v1.ResourceHugePagesPrefix+size.String())] = n * size.Value()
	}
	return all
}

// AdmissionLimits returns the resources and features of the node that admission compares with the
// requests of pods. The maximum number of pods depends on capacity if podsPerCore is set.
func AdmissionLimits(cfg *config.Config, capacity, allocatable render.Resources) admission.Limits {
	amounts := admission.Amounts{v1.ResourceCPU: allocatable.MilliCPU, v1.ResourceMemory: allocatable.Memory}
	if allocatable.EphemeralStorage > 0 {
		amounts[v1.ResourceEphemeralStorage] = allocatable.EphemeralStorage
	}
	maps.Copy(amounts, ReadHugePages("/sys/kernel/mm/hugepages"))
	return admission.Limits{MaxPods: maxPods(&cfg.Node, capacity), Allocatable: amounts, Devices: map[v1.ResourceName]allocation.Count{}, Features: admissionFeatures(cfg), IDsPerPod: cfg.IDsPerPod}
}

// maxPods returns the maximum number of pods on the node: the lower of maxPods and podsPerCore for
// each CPU.
func maxPods(cfg *config.Node, capacity render.Resources) int {
	if cfg.PodsPerCore == 0 {
		return cfg.MaxPods
	}
	return int(min(int64(cfg.MaxPods), int64(cfg.PodsPerCore)*capacity.MilliCPU/1000))
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

// ReadDNS parses a file such as /etc/resolv.conf. If the file does not exist, or if path is "",
// it returns the zero DNS.
func ReadDNS(path string) (render.DNS, error) {
	if path == "" {
		return render.DNS{}, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return render.DNS{}, nil
	}
	if err != nil {
		return render.DNS{}, fmt.Errorf("reading the DNS configuration of the node: %w", err)
	}
	return render.ParseResolvConf(string(text)), nil
}

// ReadMemInfo returns the value of a field of /proc/meminfo in bytes. path is the path of this
// file.
func ReadMemInfo(path, field string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the host: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if name != field {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the memory of the host: %s of %s: %w", field, path, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("reading the memory of the host: %s has no field %s", path, field)
}

// ReadDiskSize returns the size in bytes of the file system that contains dir. If dir does not
// exist, ReadDiskSize uses the nearest parent that exists. The size is 0 if the file system has no
// limit, such as a tmpfs without a size.
func ReadDiskSize(dir string) (int64, error) {
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		if errors.Is(err, unix.ENOENT) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reading the size of the file system of %s: %w", dir, err)
		}
		return int64(fs.Blocks) * int64(fs.Bsize), nil
	}
}

// ReadMaxPids returns the maximum number of processes and threads that the kernel allows, or 0 if
// it is unknown. dir is /proc/sys/kernel.
func ReadMaxPids(dir string) int64 {
	limit := int64(math.MaxInt64)
	for _, name := range []string{"pid_max", "threads-max"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		n, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || parseErr != nil {
			return 0
		}
		limit = min(limit, n)
	}
	return limit
}

// NewAddressFollower returns a follower of the addresses of the node. If the user has not set the
// addresses and the node is in a cluster, the first address is the address to which the node name
// resolves, as in the kubelet. The follower stores an address that it found by a route or by the
// node name, for the next start. The parameter file is the path of the file for this address; if it
// is "", no address is stored.
func NewAddressFollower(cfg *config.Config, file string, log *slog.Logger) *node.AddressWatcher {
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
