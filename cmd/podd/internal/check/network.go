package check

import (
	"fmt"
	"slices"
	"strings"
)

func checkNetwork(f *Facts, r *Result) {
	inCluster := f.Config.Cluster.Kubeconfig != ""
	checkCNI(f, r, inCluster)
	if !f.Network.ForwardsIPv4 && !slices.ContainsFunc(f.Runtime.Settings.CNIPlugins, enablesForwarding) {
		r.warn("set net.ipv4.ip_forward=1 with sysctl, unless the CNI plugin sets it", "the kernel does not forward IPv4 packets, so pods may be unable to reach other hosts")
	}
	if inCluster && !f.Network.FiltersBridges {
		r.warn("run \"modprobe br_netfilter\" and set net.bridge.bridge-nf-call-iptables=1, unless the network add-on needs no bridge", "iptables rules do not apply to bridges, so Services may be unreachable from pods on the same node")
	}
}

// enablesForwarding reports whether a CNI plugin enables IP forwarding in the kernel when the
// plugin is first used.
func enablesForwarding(plugin string) bool { return plugin == "bridge" || plugin == "ptp" }

// checkCNI checks the condition NetworkReady and the plugins. In a cluster, a network that is not
// ready is only a warning, because a network add-on may install the configuration later.
func checkCNI(f *Facts, r *Result, inCluster bool) {
	n, cni := f.Runtime.Node, f.Runtime.Settings
	switch {
	case n.NetworkReady:
		r.Detail = "ready"
		if len(cni.CNIPlugins) > 0 {
			r.Detail += ", plugins " + strings.Join(cni.CNIPlugins, " ")
		}
	case inCluster:
		r.Detail = "not ready"
		r.warn("install a network add-on in the cluster, or correct its CNI configuration on this node", "the pod network is not ready (condition NetworkReady): %s", n.NetworkMessage)
	default:
		r.Detail = "not ready"
		in := ""
		if cni.CNIConfDir != "" {
			in = " in " + cni.CNIConfDir
		}
		r.fail("install a CNI configuration"+in+", or correct the existing one, and install its plugins; pods on the host network need none", "the pod network is not ready (condition NetworkReady): %s", n.NetworkMessage)
	}
	plugins, dirs := strings.Join(f.Network.MissingPlugins, ", "), strings.Join(cni.CNIPluginDirs, ", ")
	switch dir := f.Network.PluginDir; {
	case dir != "":
		r.fail(fmt.Sprintf("set bin_dir = %q (containerd 2.0 and earlier) or bin_dirs = [%q] (containerd 2.1 and later) in the section \"cni\" of containerd's configuration, and restart containerd", dir, dir),
			"the CNI configuration in %s needs the plugins %s, which are in %s but not in %s", cni.CNIConfDir, plugins, dir, dirs)
	case plugins != "":
		r.fail("install the CNI plugins, for example from the package containernetworking-plugins", "the CNI configuration in %s needs the plugins %s, which are not in %s", cni.CNIConfDir, plugins, dirs)
	}
}
