package inspect

import (
	"context"
	"net"
	"os"
	"time"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
)

// lookupTimeout limits the time for the lookup of a name.
const lookupTimeout = 3 * time.Second

// readNameResolution looks up the name of the node, and reads the resolv.conf for pods. In a cluster, the
// name is the node name, because the address of the node depends on it. Otherwise it is the
// hostname, which pods on the host network have.
func readNameResolution(ctx context.Context, cfg *config.Config) check.NameResolution {
	n := check.NameResolution{HasUpstreamFile: exists(check.UpstreamResolvConf)}
	n.DNS, n.ResolvConfErr = host.ReadDNS(cfg.ResolvConf)
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
