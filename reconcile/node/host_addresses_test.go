package node

import (
	"log/slog"
	"net/netip"
	"testing"
)

func TestResolve(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}
	if got, _ := resolve(t.Context(), "192.0.2.7", own); got.String() != "192.0.2.7" {
		t.Errorf("resolve of an IP address: got %s, want 192.0.2.7", got)
	}
	if got, unresolved := resolve(t.Context(), "localhost", own); got.IsValid() || unresolved {
		t.Errorf("resolve of localhost: got addresses %s, unresolved: %v; want no addresses, unresolved: false", got, unresolved)
	}
}

// TestRead reads the addresses of the host of the test.
func TestRead(t *testing.T) {
	for _, given := range [][]netip.Addr{nil, {netip.IPv4Unspecified()}, {netip.IPv6Unspecified()}} {
		f := NewAddressWatcher(t.Context(), AddressOptions{NodeIPs: given, Log: slog.New(slog.DiscardHandler)})
		ips := f.Addresses().IPs
		if len(ips) != 1 || ips[0].IsUnspecified() || !IsLocal(ips[0].String()) || len(given) > 0 && ips[0].Is4() != given[0].Is4() {
			t.Errorf("for %v: got %v, want one address of the host", given, ips)
		}
	}
}

func TestIsLocal(t *testing.T) {
	for ip, want := range map[string]bool{"127.0.0.1": true, "192.0.2.77": false, "2001:db8::77": false} {
		if got := IsLocal(ip); got != want {
			t.Errorf("%s: got %v, want %v", ip, got, want)
		}
	}
}
