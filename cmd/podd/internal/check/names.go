package check

import (
	"net/netip"
	"strings"

	"podd/reconcile/render"
)

func checkNameResolution(f *Facts, r *Result) {
	n, path := f.NameResolution, f.Config.ResolvConf
	if n.LookupErr != nil {
		r.warn("add the name to /etc/hosts or to DNS", "the name of this node, %s, cannot be resolved: %v", n.LookupHost, n.LookupErr)
	}
	if path == "" {
		r.Detail = "pods get no DNS configuration of the node"
		return
	}
	if n.ResolvConfErr != nil {
		r.Detail = "cannot be read"
		r.fail("correct the file, or set another file with --resolv-conf", "%v; no pod starts until the file can be read", n.ResolvConfErr)
		return
	}
	if n.ResolvConfMissing {
		r.Detail = "no " + path
		r.warn("create the file with a name server, or set another file with --resolv-conf", "%s does not exist, so pods cannot resolve names", path)
		return
	}
	if len(n.DNS.Servers) == 0 {
		r.Detail = "no name servers"
		r.warn("add a name server to the file, or set another file with --resolv-conf", "%s contains no name servers, so pods cannot resolve names", path)
		return
	}
	r.Detail = "name servers " + strings.Join(n.DNS.Servers, " ")
	for _, advice := range render.AdviseNodeDNS(n.DNS) {
		r.warn("remove entries from "+path, "%s", advice.Message)
	}
	if loopback := loopbackServers(n.DNS.Servers); len(loopback) > 0 {
		remedy := "use --resolv-conf to set a file with other name servers"
		if n.HasUpstreamFile {
			remedy = "set --resolv-conf=" + UpstreamResolvConf
		}
		r.warn(remedy, "%s contains the loopback address %s, which pods that are not on the host network cannot reach", path, strings.Join(loopback, ", "))
	}
}

// UpstreamResolvConf is the file in which systemd-resolved lists the name servers that it uses.
const UpstreamResolvConf = "/run/systemd/resolve/resolv.conf"

// loopbackServers returns the name servers with a loopback address.
func loopbackServers(servers []string) (loopback []string) {
	for _, s := range servers {
		if ip, err := netip.ParseAddr(s); err == nil && ip.Unmap().IsLoopback() {
			loopback = append(loopback, s)
		}
	}
	return loopback
}
