package daemon

import (
	"log/slog"
	"net"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/node"
	"podd/server/pki"
)

// openPKI returns the certificate authority of the kubelet API. It returns nil if the API is
// disabled. It also returns nil if the authority cannot be opened, because pods run without an
// authority.
func openPKI(cfg *config.Config, log *slog.Logger) *pki.Authority {
	if cfg.API.Address == "" {
		return nil
	}
	authority, err := pki.Open(cfg.RootDir)
	if err != nil {
		log.Error("opening the certificate authority failed; the kubelet API is disabled until podd restarts", "err", err)
		return nil
	}
	return authority
}

// newServingIPsFunc returns a function that returns the addresses at which clients may currently
// reach this node.
func newServingIPsFunc(address *node.AddressWatcher) func() []net.IP {
	return func() []net.IP {
		ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		for _, ip := range address.Addresses().IPs {
			if !ip.IsLoopback() {
				ips = append(ips, ip.AsSlice())
			}
		}
		return ips
	}
}
