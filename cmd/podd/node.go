package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/cgroup"
	"podd/reconcile/plan"
	"podd/reconcile/render"
)

// renderNode is the machine as pods see it.
func renderNode(cfg *config.Config, instance string) (render.Node, error) {
	dns, err := readDNS(cfg.ResolvConf)
	if err != nil {
		return render.Node{}, err
	}
	capacity, allocatable, err := amounts(cfg)
	if err != nil {
		return render.Node{}, err
	}
	machine, err := config.ThisMachine()
	if err != nil {
		return render.Node{}, err
	}
	var swap int64
	if cfg.LimitedSwap {
		if swap, err = memInfo("/proc/meminfo", "SwapTotal"); err != nil {
			return render.Node{}, err
		}
	}
	return render.Node{
		Name:        cfg.NodeName,
		HostIPs:     nodeIPs(cfg),
		Capacity:    capacity,
		Allocatable: allocatable, PodsLimit: podsLimit(cfg, capacity),
		Instance:     instance,
		LogsDir:      cfg.PodLogsDir,
		CgroupRoot:   cfg.CgroupRoot,
		CgroupDriver: cfg.CgroupDriver,
		CgroupV2:     machine.CgroupV2,
		SwapLimits:   machine.SwapLimits, Swap: swap,
		PodPids: cfg.PodPids, HugePageSizes: cgroup.HugePageSizes(),
		SELinux: machine.SELinux,
		DNS:     dns, ClusterDNS: cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain,
		RuntimeClasses: cfg.RuntimeClasses,
		SeccompDefault: cfg.SeccompDefault, SeccompDir: filepath.Join(cfg.RootDir, "seccomp"),
	}, nil
}

// hugePages are the machine's, in bytes of each size.
func hugePages(dir string) plan.Amounts {
	all := plan.Amounts{}
	sizes, _ := os.ReadDir(dir) // no such directory, no such pages
	for _, e := range sizes {
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB"), 10, 64)
		text, rerr := os.ReadFile(filepath.Join(dir, e.Name(), "nr_hugepages"))
		n, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || rerr != nil || perr != nil {
			continue
		}
		size := resource.NewQuantity(kib<<10, resource.BinarySI)
		all[v1.ResourceName(v1.ResourceHugePagesPrefix+size.String())] = n * size.Value()
	}
	return all
}

// limitsOf are those that pods are admitted by.
func limitsOf(cfg *config.Config, allocatable render.Resources) plan.Limits {
	amounts := plan.Amounts{v1.ResourceCPU: allocatable.MilliCPU, v1.ResourceMemory: allocatable.Memory}
	if allocatable.EphemeralStorage > 0 {
		amounts[v1.ResourceEphemeralStorage] = allocatable.EphemeralStorage
	}
	maps.Copy(amounts, hugePages("/sys/kernel/mm/hugepages"))
	return plan.Limits{MaxPods: cfg.MaxPods, Amounts: amounts, Devices: map[v1.ResourceName]plan.Devices{}, Machine: machineOf(cfg)}
}

// machineOf is what the machine can give a pod, for all that podd knows itself.
func machineOf(cfg *config.Config) plan.Machine {
	return plan.Machine{
		UnsafeSysctls: cfg.UnsafeSysctls, RuntimeClasses: cfg.RuntimeClasses, Labels: nodeLabels(cfg),
		AppArmor: appArmor("/sys/module/apparmor/parameters/enabled"),
	}
}

// readDNS reads a resolv.conf; none at all is a machine without DNS.
func readDNS(path string) (render.DNS, error) {
	if path == "" {
		return render.DNS{}, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return render.DNS{}, nil
	}
	if err != nil {
		return render.DNS{}, fmt.Errorf("reading the node's DNS: %w", err)
	}
	return render.ParseResolvConf(string(text)), nil
}

// memInfo reads an amount of the machine's memory or swap, in bytes.
func memInfo(path, field string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("reading the machine's memory: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if name != field {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return kib << 10, err
	}
	return 0, fmt.Errorf("reading the machine's memory: %s has no %s", path, field)
}

// diskSize is that of the file system a directory is in, or will be in; 0: it
// has none, as a tmpfs without a limit.
func diskSize(dir string) (int64, error) {
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		if errors.Is(err, unix.ENOENT) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reading the size of the disk of %s: %w", dir, err)
		}
		return int64(fs.Blocks) * int64(fs.Bsize), nil
	}
}

// mostPids is how many processes the kernel lets be at once; 0: unknown.
func mostPids(dir string) int64 {
	most := int64(math.MaxInt64)
	for _, name := range []string{"pid_max", "threads-max"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		n, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || perr != nil {
			return 0
		}
		most = min(most, n)
	}
	return most
}

// nodeIPs are the machine's addresses, in a cluster as the kubelet finds them:
// where the user gives none, that of the name goes before one that is found.
func nodeIPs(cfg *config.Config) []string {
	if cfg.Cluster.Kubeconfig != "" && len(cfg.NodeIPs) == 0 {
		if ip := namedIP(cfg.NodeName); ip != "" {
			return []string{ip}
		}
	}
	return hostIPs(cfg.NodeIPs)
}

// lookupTime is how long a name may take to resolve; pods wait for it.
const lookupTime = time.Second

// namedIP is the address that a name is, or else resolves to, of IPv4 before IPv6,
// and that this machine has; "" for none.
func namedIP(name string) (found string) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	resolved, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", name) // no answer is no address
	own, _ := net.InterfaceAddrs()
	for _, a := range own {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		ip = ip.Unmap()
		for _, r := range resolved {
			if r.Unmap() == ip && (found == "" || ip.Is4()) {
				found = ip.String()
			}
		}
	}
	return found
}

// hostIPs are the given addresses, else one that is found: of IPv6 where :: is
// given, of IPv4 for 0.0.0.0.
func hostIPs(given []netip.Addr) []string {
	switch {
	case len(given) == 0:
		return []string{findIP("192.0.2.1:9", "127.0.0.1", func(net.IP) bool { return true })}
	case given[0] == netip.IPv4Unspecified():
		return []string{findIP("192.0.2.1:9", "127.0.0.1", func(ip net.IP) bool { return ip.To4() != nil })}
	case given[0] == netip.IPv6Unspecified():
		return []string{findIP("[2001:db8::1]:9", "::1", func(ip net.IP) bool { return ip.To4() == nil })}
	}
	var out []string
	for _, a := range given {
		out = append(out, a.String())
	}
	return out
}

// findIP is the address that a packet to the world would leave from, else the
// first that fits and is not loopback, else loopback.
func findIP(world, loopback string, fits func(net.IP) bool) string {
	// Connecting a UDP socket sends nothing; it makes the kernel pick a route.
	if c, err := net.Dial("udp", world); err == nil {
		defer c.Close()
		if a, ok := c.LocalAddr().(*net.UDPAddr); ok && !a.IP.IsLoopback() {
			return a.IP.String()
		}
	}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && fits(n.IP) {
				return n.IP.String()
			}
		}
	}
	return loopback
}

// appArmor reads whether the kernel enforces AppArmor's profiles.
func appArmor(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.HasPrefix(string(text), "Y")
}

// nodeLabels are those that every node has and those of the flag, which win.
func nodeLabels(cfg *config.Config) map[string]string {
	labels := map[string]string{
		v1.LabelHostname: cfg.NodeName, v1.LabelOSStable: runtime.GOOS, v1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": runtime.GOOS, "beta.kubernetes.io/arch": runtime.GOARCH,
	}
	maps.Copy(labels, cfg.NodeLabels)
	return labels
}
