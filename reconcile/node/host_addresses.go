package node

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// hostAddresses contains the addresses that the kernel and the resolver report at one moment.
type hostAddresses struct {
	interfaceIPs []netip.Addr // the addresses of all interfaces
	readFailed   bool         // whether the addresses could not be read
	// source4 and source6 are the source addresses of packets to the default route of each
	// family; zero if there is no such route.
	source4, source6 netip.Addr
	// nameAddress is an address of the host to which the node's name resolves; zero if there is no
	// such address.
	nameAddress netip.Addr
	// isUnresolved reports whether the resolver did not respond.
	isUnresolved bool
}

func (r hostAddresses) has(ip netip.Addr) bool { return slices.Contains(r.interfaceIPs, ip) }

// These addresses stand for any address outside the host's networks. They are reserved for
// documentation (RFC 5737, RFC 3849), so that only a default route leads to them.
var (
	externalIPv4 = netip.MustParseAddrPort("192.0.2.1:9")
	externalIPv6 = netip.MustParseAddrPort("[2001:db8::1]:9")
)

// lookupTimeout limits how long the lookup of a name may take.
const lookupTimeout = time.Second

// readHostAddresses reads the addresses of the host. If name is not "", it also resolves name,
// which is the node's name.
func readHostAddresses(ctx context.Context, name string) hostAddresses {
	r := hostAddresses{source4: sourceAddress(externalIPv4), source6: sourceAddress(externalIPv6)}
	var err error
	if r.interfaceIPs, err = interfaceAddresses(); err != nil {
		return hostAddresses{readFailed: true}
	}
	if name != "" {
		r.nameAddress, r.isUnresolved = resolve(ctx, name, r.interfaceIPs)
	}
	return r
}

// IsLocal reports whether ip belongs to an interface of this host that is up. IsLocal also returns
// true if ip is not an IP address, or if the host lacks the memory or file descriptors for the
// check.
func IsLocal(ip string) bool {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return true
	}
	from, err := routeSource(netip.AddrPortFrom(addr, externalIPv4.Port()))
	for _, exhausted := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS} {
		if errors.Is(err, exhausted) {
			return true
		}
	}
	return err == nil && from == addr.Unmap()
}

func interfaceAddresses() ([]netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var addresses []netip.Addr
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				addresses = append(addresses, ip.Unmap())
			}
		}
	}
	return addresses, nil
}

// sourceAddress returns the source address of packets to the address external, which is outside the
// host's networks. It returns zero if there is no route to this address.
func sourceAddress(external netip.AddrPort) netip.Addr {
	ip, err := routeSource(external)
	if err != nil || ip.IsLoopback() {
		return netip.Addr{}
	}
	return ip
}

// routeSource returns the source address of packets to an address.
func routeSource(to netip.AddrPort) (from netip.Addr, err error) {
	// Connecting a UDP socket sends nothing, but makes the kernel choose a route.
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// resolve returns the first address to which name resolves and which is in hostIPs, IPv4 before
// IPv6; zero if there is no such address. If name is an IP address, resolve returns this address.
// isUnresolved reports whether the resolver did not respond.
func resolve(ctx context.Context, name string, hostIPs []netip.Addr) (address netip.Addr, isUnresolved bool) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip, false
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	resolved, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if dns := (*net.DNSError)(nil); err != nil && !(errors.As(err, &dns) && dns.IsNotFound) {
		return netip.Addr{}, true
	}
	for _, ip := range resolved {
		ip = ip.Unmap()
		if ip.IsGlobalUnicast() && slices.Contains(hostIPs, ip) && (!address.IsValid() || ip.Is4() && !address.Is4()) {
			address = ip
		}
	}
	return address, false
}
