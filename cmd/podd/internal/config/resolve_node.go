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

func (r *resolver) resolveNode(c *Config) {
	f, k, d := r.flags, r.k, defaults()
	c.NodeName, c.InvalidHostname = r.nodeName()
	c.Cloud, c.Named = f.CloudMetadata, f.HostnameOverride != ""
	if c.Cloud != "" && !slices.Contains(metadata.Clouds, c.Cloud) {
		r.add(manifest.Error, "--cloud-metadata", "unknown value %q; want one of %s", c.Cloud, strings.Join(metadata.Clouds, ", "))
	}
	if c.Cloud != "" && k.RunOnce {
		r.add(manifest.Error, "--cloud-metadata", "cannot be used together with --runonce; remove one of them")
	}
	c.NodeLabels = r.labels()
	c.NodeIPs = r.nodeIPs()
	c.MaxStatusImages = int(derefOr(k.NodeStatusMaxImages, d.NodeStatusMaxImages))
	c.AsKubelet = r.machine.AsKubelet() || f.Kubeconfig != ""
	root, logs := DefaultRootDir, d.PodLogsDir
	switch {
	case c.AsKubelet:
		root = KubeletRootDir
	case k.ContainerRuntimeEndpoint == "" && r.checkoutRuntime() != "":
		root, logs = filepath.Join(r.machine.Checkout, "root"), filepath.Join(r.machine.Checkout, "logs")
	}
	c.RootDir = r.absDir("--root-dir", f.RootDir, root)
	c.RunDir = r.absDir("--run-dir", f.RunDir, DefaultRunDir)
	c.PodLogsDir = filepath.Clean(cmp.Or(k.PodLogsDir, logs))
	c.MaxPods = int(cmp.Or(k.MaxPods, d.MaxPods))
	if k.PodPidsLimit != nil {
		c.PodPids = max(*k.PodPidsLimit, 0) // as in the kubelet, a negative value means no limit
	}
	c.Reserved = sumReserved(k)
	c.Pressure = pressureFrom(k)
	c.LimitedSwap = k.MemorySwap.SwapBehavior == LimitedSwap
	c.EnforceReserved = k.EnforceNodeAllocatable == nil || slices.Contains(k.EnforceNodeAllocatable, "pods")
	c.Shutdown = shutdownGroups(k)
	c.Adopt = r.machine.AsKubelet()
	if f.Adopt != nil {
		c.Adopt = *f.Adopt
	}
	c.AdoptInstances = f.AdoptInstance
	if len(f.AdoptInstance) > 0 && k.RunOnce {
		r.add(manifest.Error, "--adopt-instance", "cannot be used together with --runonce; remove one of them")
	}
}

// nodeIPs parses --node-ip: one address, or one of each family.
func (r *resolver) nodeIPs() (all []netip.Addr) {
	for text := range strings.SplitSeq(r.flags.NodeIP, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			r.add(manifest.Error, "--node-ip", "%q is not an IP address", text)
			continue
		}
		all = append(all, ip.Unmap())
	}
	switch {
	case len(all) > 2 || len(all) == 2 && all[0].Is4() == all[1].Is4():
		r.add(manifest.Error, "--node-ip", "%s: want one address, or one IPv4 and one IPv6 address", r.flags.NodeIP)
	case len(all) == 2 && slices.ContainsFunc(all, netip.Addr.IsUnspecified):
		r.add(manifest.Error, "--node-ip", "%s: 0.0.0.0 and ::, with which podd detects the address, cannot be combined with another address", r.flags.NodeIP)
	}
	return all
}

// nodeName returns the name of the flag or else the hostname. A hostname that cannot name
// a node is returned as invalid, because podd may have a stored or a cloud's name.
func (r *resolver) nodeName() (name, invalid string) {
	if given := r.flags.HostnameOverride; given != "" {
		name, err := NodeName(given)
		if err != nil {
			r.add(manifest.Error, "--hostname-override", "%v", err)
		}
		return name, ""
	}
	name, err := NodeName(r.machine.Hostname)
	if err == nil {
		return name, ""
	}
	if r.k.RunOnce { // it uses no stored name
		r.add(manifest.Error, "hostname", "%v", err)
	}
	return "", r.machine.Hostname
}

// CheckNodeName returns an error if the node has no name.
func (n *Node) CheckNodeName() error {
	if n.NodeName != "" {
		return nil
	}
	_, err := NodeName(n.InvalidHostname)
	return fmt.Errorf("hostname: %w", err)
}

// NodeName returns the node name for a hostname as in the kubelet: trimmed and in lower
// case. It must be a DNS-1123 subdomain.
func NodeName(host string) (string, error) {
	name := strings.ToLower(strings.TrimSpace(host))
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", fmt.Errorf("%q is not a valid node name; want letters, digits, - and ., for example --hostname-override=node1", host)
	}
	return name, nil
}

// absDir returns the absolute path of a flag's value, or def if there is none. The path must
// be absolute because the runtime, which has another working directory, gets it.
func (r *resolver) absDir(flag, value, def string) string {
	if value == "" {
		return def
	}
	abs, err := filepath.Abs(value)
	if err != nil {
		r.add(manifest.Error, flag, "%v", err)
		return def
	}
	if abs == "/" {
		r.add(manifest.Error, flag, "/ is not allowed; want another path")
	}
	return abs
}
