package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// checkEnums checks the fields that have a fixed set of values.
func (c *checker) checkEnums() {
	k := c.kubelet
	for _, e := range []struct {
		field, value string
		want         []string
	}{
		{"cgroupDriver", k.CgroupDriver, []string{"cgroupfs", "systemd"}},
		{"logging.format", k.Logging.Format, []string{"text", "json"}},
		{"authorization.mode", string(k.Authorization.Mode), []string{"AlwaysAllow", "Webhook"}},
		{"contentType", k.ContentType, []string{"application/vnd.kubernetes.protobuf", "application/json"}},
		{"configMapAndSecretChangeDetectionStrategy", string(k.ConfigMapAndSecretChangeDetectionStrategy), []string{"Watch", "Cache", "Get"}},
		{"hairpinMode", k.HairpinMode, []string{"promiscuous-bridge", "hairpin-veth", "none"}},
		{"topologyManagerScope", k.TopologyManagerScope, []string{"container", "pod"}},
		{"memoryReservationPolicy", string(k.MemoryReservationPolicy), []string{"None", "TieredReservation"}},
		{"imagePullCredentialsVerificationPolicy", string(k.ImagePullCredentialsVerificationPolicy),
			[]string{"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"}},
		{"memorySwap.swapBehavior", k.MemorySwap.SwapBehavior, []string{"NoSwap", limitedSwap}},
	} {
		if e.value != "" && !slices.Contains(e.want, e.value) {
			c.errorf(e.field, "unknown value %q; must be %s", e.value, strings.Join(e.want, " or "))
		}
	}
}

// checkAddresses checks IP addresses, the domain name and the endpoints of the runtime.
func (c *checker) checkAddresses() {
	for _, a := range []struct{ field, value string }{
		{"healthzBindAddress", c.kubelet.HealthzBindAddress},
		{"address", c.kubelet.Address},
	} {
		if _, err := netip.ParseAddr(a.value); a.value != "" && err != nil {
			c.errorf(a.field, "%q is not an IP address", a.value)
		}
	}
	for i, dns := range c.kubelet.ClusterDNS {
		if _, err := netip.ParseAddr(dns); err != nil {
			c.errorf(joinIndex("clusterDNS", i), "%q is not an IP address", dns)
		}
	}
	if strings.ContainsAny(c.kubelet.ClusterDomain, " \t\r\n/") {
		c.errorf("clusterDomain", "%q is not a domain name", c.kubelet.ClusterDomain)
	}
	if cidr := c.kubelet.PodCIDR; cidr != "" {
		for part := range strings.SplitSeq(cidr, ",") {
			if _, _, err := net.ParseCIDR(part); err != nil {
				c.errorf("podCIDR", "%q is not a CIDR such as 10.88.0.0/16", part)
			}
		}
	}
	for _, field := range []string{"containerRuntimeEndpoint", "imageServiceEndpoint"} {
		value := c.kubelet.ContainerRuntimeEndpoint
		if field == "imageServiceEndpoint" {
			value = c.kubelet.ImageServiceEndpoint
		}
		if _, err := parseEndpoint(value); err != nil {
			c.errorf(field, "%v", err)
		}
	}
}

// parseEndpoint parses the endpoint of a CRI service and returns it as "unix:///path". A path
// without a scheme is a Unix socket. For "", parseEndpoint returns "".
func parseEndpoint(text string) (string, error) {
	path, ok := strings.CutPrefix(text, "unix://")
	switch {
	case text == "":
		return "", nil
	case !ok && strings.Contains(text, "://"):
		return "", fmt.Errorf("%q is not a Unix socket; must be an endpoint such as unix:///run/containerd/containerd.sock", text)
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("%q is not an absolute path; must have the form unix:///path", text)
	}
	return "unix://" + filepath.Clean(path), nil
}

// checkPaths checks the directory of pod logs and the names of cgroups.
func (c *checker) checkPaths() {
	if p := c.kubelet.PodLogsDir; p != "" && (!filepath.IsAbs(p) || filepath.Clean(p) == "/") {
		c.errorf("podLogsDir", "invalid directory %q; must be an absolute path below /", p)
	}
	for _, f := range []struct{ field, value string }{
		{"cgroupRoot", c.kubelet.CgroupRoot}, {"kubeletCgroups", c.kubelet.KubeletCgroups}, {"systemCgroups", c.kubelet.SystemCgroups},
	} {
		if hasDotDot(f.value) {
			c.errorf(f.field, "%q must not contain \"..\"", f.value)
		}
	}
	if p := c.kubelet.SystemCgroups; p != "" && filepath.Join("/", p) == "/" {
		c.errorf("systemCgroups", "%q is the root cgroup, from which the processes are moved; set another cgroup", p)
	}
}

// hasDotDot reports whether the path of a cgroup could lead out of its hierarchy.
func hasDotDot(cgroup string) bool { return slices.Contains(strings.Split(cgroup, "/"), "..") }
