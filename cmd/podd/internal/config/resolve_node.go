package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"podd/cmd/podd/internal/metadata"
	"podd/manifest"
)

// resolveNode sets the identity, the directories and the resources of the node, its shutdown and the
// adoption of pods.
func (r *resolver) resolveNode(c *Config) {
	f, k, d := r.flags, r.kubelet, newDefaults()
	c.NodeName, c.InvalidHostname = r.resolveNodeName()
	c.Cloud, c.NodeNameSetByUser = f.CloudMetadata, f.HostnameOverride != ""
	if c.Cloud != "" && !slices.Contains(metadata.Clouds, c.Cloud) {
		r.addProblem(manifest.Error, "--cloud-metadata", "unknown value %q; must be one of %s", c.Cloud, strings.Join(metadata.Clouds, ", "))
	}
	if c.Cloud != "" && k.RunOnce {
		r.addProblem(manifest.Error, "--cloud-metadata", "cannot be used together with --runonce; remove one of them")
	}
	c.NodeLabels = r.parseLabels()
	c.NodeIPs = r.parseNodeIPs()
	c.MaxStatusImages = int(derefOr(k.NodeStatusMaxImages, d.NodeStatusMaxImages))
	c.ActsAsKubelet = r.host.calledAsKubelet() || f.Kubeconfig != ""
	root, logs := defaultRootDir, d.PodLogsDir
	switch {
	case c.ActsAsKubelet:
		root = KubeletRootDir
	case k.ContainerRuntimeEndpoint == "" && r.privateRuntimeEndpoint() != "":
		root, logs = filepath.Join(r.host.PrivateRuntimeDir, "root"), filepath.Join(r.host.PrivateRuntimeDir, "logs")
	}
	c.RootDir = r.absDir("--root-dir", f.RootDir, root)
	c.RunDir = r.absDir("--run-dir", f.RunDir, DefaultRunDir)
	c.PodLogsDir = filepath.Clean(cmp.Or(k.PodLogsDir, logs))
	r.resolveLockFile(c)
	c.MaxPods, c.PodsPerCore = int(valueOr(r.merged, "maxPods", k.MaxPods, d.MaxPods)), int(k.PodsPerCore)
	if k.PodPidsLimit != nil {
		c.PodPidsLimit = max(*k.PodPidsLimit, 0) // as in the kubelet, a negative value means no limit
	}
	c.Reserved = sumReserved(k)
	c.Eviction = newEvictionPolicy(k, r.duration("evictionPressureTransitionPeriod", k.EvictionPressureTransitionPeriod, d.EvictionPressureTransitionPeriod))
	c.EnableLimitedSwap = k.MemorySwap.SwapBehavior == limitedSwap
	c.WarnsCgroupV1 = !r.host.UsesCgroupV2 && k.FailCgroupV1 == nil
	c.EnforceReserved, c.ReservedCgroups = enforcesReserved(k), reservedCgroups(k)
	c.OOMScoreAdj = int(derefOr(k.OOMScoreAdj, d.OOMScoreAdj))
	r.resolveOwnProcess(c)
	c.IgnoreEvictionInAllocatable = f.ExperimentalAllocatableIgnoreEviction
	c.HidesUserNamespace = !isGateEnabled(k, gateInUserNamespace)
	c.HugePagesAvailable = !isGateEnabled(k, gateHugePageEviction)
	c.DisableMemoryNotifications = r.merged.isSet("kernelMemcgNotification") && !k.KernelMemcgNotification
	c.SingleProcessOOMKill = k.SingleProcessOOMKill != nil && *k.SingleProcessOOMKill
	c.Shutdown = shutdownGroups(k)
	c.Adopt = r.host.calledAsKubelet()
	if f.Adopt != nil {
		c.Adopt = *f.Adopt
	}
	c.AdoptInstances = f.AdoptInstance
	if len(f.AdoptInstance) > 0 && k.RunOnce {
		r.addProblem(manifest.Error, "--adopt-instance", "cannot be used together with --runonce; remove one of them")
	}
}

// resolveOwnProcess sets the limits and cgroups of podd and other processes of the host that are not
// in pods, and what podd does with kernel parameters.
func (r *resolver) resolveOwnProcess(c *Config) {
	k, d := r.kubelet, newDefaults()
	c.MaxOpenFiles = valueOr(r.merged, "maxOpenFiles", k.MaxOpenFiles, d.MaxOpenFiles)
	c.OwnCgroup, c.SystemCgroup, c.RuntimeCgroup = absCgroup(k.KubeletCgroups), absCgroup(k.SystemCgroups), absCgroup(r.flags.RuntimeCgroups)
	if hasDotDot(r.flags.RuntimeCgroups) {
		r.addProblem(manifest.Error, "--runtime-cgroups", "%q must not contain \"..\"", r.flags.RuntimeCgroups)
	}
	switch {
	case k.ProtectKernelDefaults:
		c.KernelParameters = CheckKernelParameters
	case r.merged.isSet("protectKernelDefaults"):
		c.KernelParameters = SetKernelParameters
	}
}

// absCgroup returns the cleaned name of a cgroup with a leading slash, or "" for "".
func absCgroup(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join("/", name)
}

// resolveLockFile sets LockFile and ExitOnLockContention.
func (r *resolver) resolveLockFile(c *Config) {
	if c.ExitOnLockContention = r.flags.ExitOnLockContention; r.flags.LockFile == "" {
		if c.ExitOnLockContention {
			r.addProblem(manifest.Error, "--exit-on-lock-contention", "needs --lock-file, the path of the file to watch")
		}
		return
	}
	if c.LockFile = absPath(r.flags.LockFile); r.kubelet.RunOnce {
		r.addProblem(manifest.Error, "--lock-file", "cannot be used together with --runonce; remove one of them")
	}
}

// parseNodeIPs returns the addresses of --node-ip: none, one address, or one address of each
// family.
func (r *resolver) parseNodeIPs() (addresses []netip.Addr) {
	for text := range strings.SplitSeq(r.flags.NodeIP, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			r.addProblem(manifest.Error, "--node-ip", "%q is not an IP address", text)
			continue
		}
		addresses = append(addresses, ip.Unmap())
	}
	switch {
	case len(addresses) > 2 || len(addresses) == 2 && addresses[0].Is4() == addresses[1].Is4():
		r.addProblem(manifest.Error, "--node-ip", "%s: must be one address, or one IPv4 and one IPv6 address", r.flags.NodeIP)
	case len(addresses) == 2 && slices.ContainsFunc(addresses, netip.Addr.IsUnspecified):
		r.addProblem(manifest.Error, "--node-ip", "%s: 0.0.0.0 and ::, with which podd detects the address, cannot be combined with another address", r.flags.NodeIP)
	}
	return addresses
}

// resolveNodeName returns the node name: the value of --hostname-override or else the hostname. If
// the hostname is not a valid node name, resolveNodeName returns the hostname as invalidHostname.
// This is not an error yet, because podd may have a stored name or the name in the metadata of the
// cloud.
func (r *resolver) resolveNodeName() (name, invalidHostname string) {
	if override := r.flags.HostnameOverride; override != "" {
		name, err := NormalizeNodeName(override)
		if err != nil {
			r.addProblem(manifest.Error, "--hostname-override", "%v", err)
		}
		return name, ""
	}
	name, err := NormalizeNodeName(r.host.Hostname)
	if err == nil {
		return name, ""
	}
	if r.kubelet.RunOnce { // with --runonce, podd uses no stored name
		r.addProblem(manifest.Error, "hostname", "%v", err)
	}
	return "", r.host.Hostname
}

// CheckNodeName returns an error if NodeName is "". The error states why InvalidHostname is not a
// valid node name.
func (n *Node) CheckNodeName() error {
	if n.NodeName != "" {
		return nil
	}
	_, err := NormalizeNodeName(n.InvalidHostname)
	return fmt.Errorf("hostname: %w", err)
}

// NormalizeNodeName returns the node name for a hostname. As in the kubelet, the name is in
// lower case and without white space around it. It returns an error if the name is not a
// DNS-1123 subdomain.
func NormalizeNodeName(hostname string) (name string, err error) {
	name = strings.ToLower(strings.TrimSpace(hostname))
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", fmt.Errorf("%q is not a valid node name; must consist of letters, digits, - and ., for example --hostname-override=node1", hostname)
	}
	return name, nil
}

// absDir returns the absolute form of the path that a flag sets, or def if value is "". The
// path must be absolute because podd passes it to the runtime, which has another working
// directory.
func (r *resolver) absDir(flag, value, def string) string {
	if value == "" {
		return def
	}
	abs, err := filepath.Abs(value)
	if err != nil {
		r.addProblem(manifest.Error, flag, "%v", err)
		return def
	}
	if abs == "/" {
		r.addProblem(manifest.Error, flag, "/ cannot be used as this directory; set another path")
	}
	return abs
}
