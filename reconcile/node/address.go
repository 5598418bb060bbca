package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Addresses are the addresses of the node. They are immutable.
type Addresses struct {
	// IPs contains the primary address first and at most one address of each family. IPs is
	// never empty: if the host has no other address, it contains the loopback address.
	IPs []netip.Addr
	// Problem is a message for users that explains why the node may be unreachable at IPs; ""
	// if no problem is known.
	Problem string
}

// Strings returns the addresses as text.
func (a Addresses) Strings() []string {
	var texts []string
	for _, ip := range a.IPs {
		texts = append(texts, ip.String())
	}
	return texts
}

func (a Addresses) String() string { return strings.Join(a.Strings(), ",") }

func (a Addresses) equal(b Addresses) bool {
	return slices.Equal(a.IPs, b.IPs) && a.Problem == b.Problem
}

// givenAddresses returns the Addresses with ips, which the user has set. The addresses are used
// even if the host does not have them. In that case Problem names the missing addresses.
func givenAddresses(ips []netip.Addr, r hostAddresses) Addresses {
	a := Addresses{IPs: ips}
	var missing []string
	for _, ip := range ips {
		if !r.readFailed && !r.has(ip) {
			missing = append(missing, ip.String())
		}
	}
	if len(missing) > 0 {
		a.Problem = fmt.Sprintf("--node-ip: this host does not have the address %s; until it has the address, failed probes of pods on the host's network are ignored", strings.Join(missing, " and "))
	}
	return a
}

// A family restricts the addresses that a node may have.
type family int

const (
	anyFamily family = iota
	onlyIPv4
	onlyIPv6
)

// allows reports whether ip is valid and of an allowed family.
func (f family) allows(ip netip.Addr) bool {
	return ip.IsValid() && (f == anyFamily || ip.Is4() == (f == onlyIPv4))
}

// A choice is the address of the node with the reason why it was chosen.
type choice struct {
	ip     netip.Addr // zero if no address was chosen yet
	reason reason
}

// A reason states why an address was chosen.
type reason int

const (
	byDefault reason = iota // it is the first suitable address of an interface
	byRoute                 // it is the source address of packets that take the default route
	byName                  // the node's name resolves to it
)

// next returns the choice that follows c, the previous choice. r contains the present addresses of
// the host.
//
// While a host renews its DHCP lease, or its link is down, the host has neither its address nor a
// default route. Its bridges may still have addresses. Therefore an address that was found by a
// route or by the node's name is replaced only by another address that was found by a route or by
// the name. An IPv4 address is never replaced by an IPv6 address.
//
// An address that was found by a route or by the node's name is also stored in a file. Otherwise
// podd could choose another address if it is restarted while the host lacks its address, or starts
// before DHCP after a boot.
func (c choice) next(f family, r hostAddresses) choice {
	if r.readFailed {
		return c.orLoopback(f) // only the first reading can have failed, because update ignores later failures
	}
	if f.allows(r.nameAddress) {
		return choice{r.nameAddress, byName}
	}
	if c.reason == byName && r.isUnresolved && r.has(c.ip) {
		return c
	}
	for _, source := range []netip.Addr{r.source4, r.source6} {
		if f.allows(source) && !(c.isFromRouteOrName() && c.ip.Is4() && source.Is6()) {
			return choice{source, byRoute}
		}
	}
	if c.isFromRouteOrName() || c.isPublishable() && r.has(c.ip) {
		return c
	}
	for _, ip := range r.interfaceIPs {
		if f.allows(ip) && ip.IsGlobalUnicast() {
			return choice{ip, byDefault}
		}
	}
	return c.orLoopback(f)
}

// isFromRouteOrName reports whether the address was found by a route or by the node's name.
func (c choice) isFromRouteOrName() bool { return c.isPublishable() && c.reason != byDefault }

// isPublishable reports whether an address was chosen that other hosts can use. Other hosts cannot
// use a loopback address.
func (c choice) isPublishable() bool { return c.ip.IsValid() && !c.ip.IsLoopback() }

// orLoopback returns c, or the loopback address if there is no address yet.
func (c choice) orLoopback(f family) choice {
	switch {
	case c.ip.IsValid():
		return c
	case f == onlyIPv6:
		return choice{ip: netip.IPv6Loopback()}
	}
	return choice{ip: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
}

// addresses returns the Addresses that contain the chosen address.
func (c choice) addresses(r hostAddresses) Addresses {
	a := Addresses{IPs: []netip.Addr{c.ip}}
	if !r.readFailed && c.isPublishable() && !r.has(c.ip) {
		a.Problem = fmt.Sprintf("this host has lost the address %s and has no default route from another address; the node keeps the lost address until such a route exists or --node-ip sets another address", c.ip)
	}
	return a
}
