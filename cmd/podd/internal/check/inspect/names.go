package inspect

import (
	"context"
	"net"
	"os"
	"time"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/reconcile/node"
)

// lookupTimeout limits the time for the lookup of a name.
const lookupTimeout = 3 * time.Second

// readNameResolution looks up a name, and reads the resolv.conf for pods. In a cluster, it looks up
// the node name, because the address of the node depends on this name. Otherwise it looks up the
// hostname, because this is also the hostname of pods on the host network.
func readNameResolution(ctx context.Context, cfg *config.Config) check.NameResolution {
	n := check.NameResolution{
		HasUpstreamFile:   exists(check.UpstreamResolvConf),
		ResolvConfMissing: cfg.ResolvConf != "" && !exists(cfg.ResolvConf),
	}
	n.DNS, n.ResolvConfErr = node.ReadDNS(cfg.ResolvConf)
	if n.LookupHost, n.LookupErr = os.Hostname(); n.LookupErr != nil {
		return n
	}
	if cfg.Cluster.Kubeconfig != "" && cfg.NodeName != "" {
		n.LookupHost = cfg.NodeName
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	_, n.LookupErr = net.DefaultResolver.LookupHost(ctx, n.LookupHost)
	return n
}
