package main

import (
	"net/netip"
	"testing"
)

func TestHostIPs(t *testing.T) {
	addr := netip.MustParseAddr
	if got := hostIPs([]netip.Addr{addr("192.0.2.1"), addr("2001:db8::1")}); len(got) != 2 || got[0] != "192.0.2.1" || got[1] != "2001:db8::1" {
		t.Errorf("given both: got %q", got)
	}
	for _, given := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		got := hostIPs([]netip.Addr{given})
		if ip, err := netip.ParseAddr(got[0]); len(got) != 1 || err != nil || ip.Is4() != given.Is4() || ip.IsUnspecified() {
			t.Errorf("for %s: got %q, want one of its family", given, got)
		}
	}
	if got := hostIPs(nil); len(got) != 1 {
		t.Errorf("given none: got %q", got)
	}
}
