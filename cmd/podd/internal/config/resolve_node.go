package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
)

func (r *resolving) node(c *Config) {
	f, k, d := r.flags, r.k, defaults()
	c.NodeName, c.InvalidHostname = r.nodeName()
	c.Cloud, c.Named = f.CloudMetadata, f.HostnameOverride != ""
	if c.Cloud != "" && !slices.Contains(clouds, c.Cloud) {
		r.add(manifest.Error, "--cloud-metadata", "%q is not known; want %s", c.Cloud, strings.Join(clouds, ", "))
	}
	if c.Cloud != "" && k.RunOnce {
		r.add(manifest.Error, "--cloud-metadata", "a run to completion is no node of a cloud; leave it out, or --runonce")
	}
	c.NodeLabels = r.labels()
	c.NodeIPs = r.nodeIPs()
	c.MaxStatusImages = int(orNil(k.NodeStatusMaxImages, d.NodeStatusMaxImages))
	c.AsKubelet = r.machine.AsKubelet() || f.Kubeconfig != ""
	root, logs := DefaultRootDir, d.PodLogsDir
	switch {
	case c.AsKubelet:
		root = KubeletRootDir
	case k.ContainerRuntimeEndpoint == "" && r.checkoutRuntime() != "":
		root, logs = filepath.Join(r.machine.Checkout, "root"), filepath.Join(r.machine.Checkout, "logs")
	}
	c.RootDir = r.dir("--root-dir", f.RootDir, root)
	c.RunDir = r.dir("--run-dir", f.RunDir, DefaultRunDir)
	c.PodLogsDir = filepath.Clean(orZero(k.PodLogsDir, logs))
	c.MaxPods = int(orZero(k.MaxPods, d.MaxPods))
	if k.PodPidsLimit != nil {
		c.PodPids = max(*k.PodPidsLimit, 0) // as in the kubelet, a negative value means no limit
	}
	c.Reserved = reserved(k)
	c.Pressure = pressureOf(k)
	c.LimitedSwap = k.MemorySwap.SwapBehavior == LimitedSwap
	c.EnforceReserved = k.EnforceNodeAllocatable == nil || slices.Contains(k.EnforceNodeAllocatable, "pods")
	c.Shutdown = shutdownGroups(k)
	c.Adopt = r.machine.AsKubelet()
	if f.Adopt != nil {
		c.Adopt = *f.Adopt
	}
	c.AdoptInstances = f.AdoptInstance
	if len(f.AdoptInstance) > 0 && k.RunOnce {
		r.add(manifest.Error, "--adopt-instance", "a run to completion takes over no pods; leave it out, or --runonce")
	}
}

// clouds are the clouds that package metadata supports.
var clouds = []string{"ec2", "gce", "openstack"}

// nodeIPs parses one address, or one of each family.
func (r *resolving) nodeIPs() (all []netip.Addr) {
	for text := range strings.SplitSeq(r.flags.NodeIP, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			r.add(manifest.Error, "--node-ip", "%q is no IP address", text)
			continue
		}
		all = append(all, ip.Unmap())
	}
	switch {
	case len(all) > 2 || len(all) == 2 && all[0].Is4() == all[1].Is4():
		r.add(manifest.Error, "--node-ip", "%s: a node has one address, or one of IPv4 and one of IPv6", r.flags.NodeIP)
	case len(all) == 2 && slices.ContainsFunc(all, netip.Addr.IsUnspecified):
		r.add(manifest.Error, "--node-ip", "%s: 0.0.0.0 and ::, for an address of that family that podd finds, stand alone", r.flags.NodeIP)
	}
	return all
}

// nodeName returns the name of the flag or else the hostname. A hostname that cannot name
// a node is returned as invalid, because podd may have a stored or a cloud's name.
func (r *resolving) nodeName() (name, invalid string) {
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
		return "", fmt.Errorf("%q cannot name a node; want letters, digits, - and ., as --hostname-override=node1", host)
	}
	return name, nil
}

// dir makes a directory of the command line absolute, because it is passed to the
// runtime, which has another working directory.
func (r *resolving) dir(flag, given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	abs, err := filepath.Abs(given)
	if err != nil {
		r.add(manifest.Error, flag, "%v", err)
		return otherwise
	}
	if abs == "/" {
		r.add(manifest.Error, flag, "/ cannot be used; want a directory of its own")
	}
	return abs
}
