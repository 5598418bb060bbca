package node

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// host parses a reading: "10.0.0.1 10.1.0.1 default=10.0.0.1 name=10.1.0.1". "name=?" means that
// the resolver does not respond, and "failed" means that the reading failed.
func host(t *testing.T, text string) hostAddresses {
	t.Helper()
	r := hostAddresses{interfaceIPs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}}
	for _, word := range strings.Fields(text) {
		kind, value, found := strings.Cut(word, "=")
		if !found {
			kind, value = "address", word
		}
		if word == "name=?" {
			r.isUnresolved = true
			continue
		}
		if word == "failed" {
			return hostAddresses{readFailed: true}
		}
		ip, err := netip.ParseAddr(value)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case kind == "address":
			r.interfaceIPs = append(r.interfaceIPs, ip)
		case kind == "name":
			r.nameAddress = ip
		case ip.Is4():
			r.source4 = ip
		default:
			r.source6 = ip
		}
	}
	return r
}

func TestChoice(t *testing.T) {
	for _, tt := range []struct {
		name   string
		family family
		steps  []string // "reading -> address", with "!" if there is a Problem
	}{
		{"before DHCP", anyFamily, []string{" -> 127.0.0.1", "10.0.0.1 default=10.0.0.1 -> 10.0.0.1"}},
		{"address before its route", anyFamily, []string{"10.0.0.1 -> 10.0.0.1", "10.0.0.1 10.1.0.1 default=10.1.0.1 -> 10.1.0.1"}},
		{"renewed lease", anyFamily, []string{
			"10.0.0.1 10.88.0.1 default=10.0.0.1 -> 10.0.0.1", "10.88.0.1 -> 10.0.0.1!", "10.88.0.1 10.0.0.2 -> 10.0.0.1!", "10.88.0.1 10.0.0.2 default=10.0.0.2 -> 10.0.0.2"}},
		{"the same lease again", anyFamily, []string{"10.0.0.1 default=10.0.0.1 -> 10.0.0.1", " -> 10.0.0.1!", "10.0.0.1 default=10.0.0.1 -> 10.0.0.1"}},
		{"default route moves", anyFamily, []string{"10.0.0.1 10.1.0.1 default=10.0.0.1 -> 10.0.0.1", "10.0.0.1 10.1.0.1 default=10.1.0.1 -> 10.1.0.1"}},
		{"default route goes", anyFamily, []string{"10.0.0.1 10.1.0.1 default=10.1.0.1 -> 10.1.0.1", "10.0.0.1 10.1.0.1 -> 10.1.0.1"}},
		{"never a default route", anyFamily, []string{"10.0.0.1 10.1.0.1 -> 10.0.0.1", "10.1.0.1 -> 10.1.0.1", "10.0.0.1 10.1.0.1 -> 10.1.0.1", " -> 10.1.0.1!"}},
		{"IPv6 first", anyFamily, []string{"fd00::1 default=fd00::1 -> fd00::1", "fd00::1 10.0.0.1 default=fd00::1 default=10.0.0.1 -> 10.0.0.1", "fd00::1 default=fd00::1 -> 10.0.0.1!"}},
		{"a bridge before IPv6", anyFamily, []string{"10.88.0.1 -> 10.88.0.1", "10.88.0.1 fd00::1 default=fd00::1 -> fd00::1", "10.88.0.1 -> fd00::1!"}},
		{"link-local alone", anyFamily, []string{"fe80::1 -> 127.0.0.1"}},
		{"only IPv6", onlyIPv6, []string{"10.0.0.1 default=10.0.0.1 -> ::1", "10.0.0.1 fd00::1 default=10.0.0.1 default=fd00::1 -> fd00::1", "10.0.0.1 -> fd00::1!"}},
		{"only IPv4", onlyIPv4, []string{"fd00::1 default=fd00::1 -> 127.0.0.1", "fd00::1 10.0.0.1 default=fd00::1 -> 10.0.0.1"}},
		{"name", anyFamily, []string{
			"10.0.0.1 10.1.0.1 default=10.0.0.1 name=10.1.0.1 -> 10.1.0.1", "10.0.0.1 10.1.0.1 default=10.0.0.1 name=? -> 10.1.0.1",
			"10.0.0.1 default=10.0.0.1 name=? -> 10.0.0.1"}},
		{"name resolves no more", anyFamily, []string{"10.0.0.1 10.1.0.1 default=10.0.0.1 name=10.1.0.1 -> 10.1.0.1", "10.0.0.1 10.1.0.1 default=10.0.0.1 -> 10.0.0.1"}},
	} {
		var c choice
		for i, step := range tt.steps {
			on, want, _ := strings.Cut(step, "-> ")
			r := host(t, on)
			c = c.next(tt.family, r)
			got := c.addresses(r).String()
			if c.addresses(r).Problem != "" {
				got += "!"
			}
			if got != want {
				t.Errorf("%s, step %d: got %s, want %s", tt.name, i+1, got, want)
				break
			}
		}
	}
}

// TestChoice_Lasts checks that no reading replaces an address with the loopback address, or an IPv4
// address with an IPv6 address.
func TestChoice_Lasts(t *testing.T) {
	pool := []netip.Addr{{}}
	for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.88.0.1", "fd00::1", "fd00::2"} {
		pool = append(pool, netip.MustParseAddr(ip))
	}
	rapid.Check(t, func(t *rapid.T) {
		var c choice
		f := family(rapid.IntRange(0, 2).Draw(t, "family"))
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			r := hostAddresses{isUnresolved: rapid.Bool().Draw(t, "unresolved"), readFailed: rapid.Bool().Draw(t, "failed")}
			for _, ip := range pool[1:] {
				if rapid.Bool().Draw(t, ip.String()) {
					r.interfaceIPs = append(r.interfaceIPs, ip)
				}
			}
			pick := func(label string, is func(netip.Addr) bool) netip.Addr {
				ip := rapid.SampledFrom(pool).Draw(t, label)
				if !ip.IsValid() || !is(ip) || !r.has(ip) {
					return netip.Addr{}
				}
				return ip
			}
			r.source4, r.source6 = pick("source4", netip.Addr.Is4), pick("source6", netip.Addr.Is6)
			was := c
			c = c.next(f, r)
			switch {
			case !f.allows(c.ip):
				t.Fatalf("choice with family %d: got %s, want an allowed address", f, c.ip)
			case was.isPublishable() && !c.isPublishable():
				t.Fatalf("choice after %s: got %s, want one that can be published", was.ip, c.ip)
			case was.isPublishable() && was.reason != byDefault && was.ip.Is4() && c.ip.Is6():
				t.Fatalf("choice after %s: got %s, want no IPv6 address", was.ip, c.ip)
			case c != was && !r.has(c.ip) && c.isPublishable():
				t.Fatalf("new choice: got %s, want an address of the host", c.ip)
			}
		}
	})
}

func TestGiven(t *testing.T) {
	ips := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	for on, want := range map[string]string{
		"10.0.0.1 fd00::1":          "",
		"10.0.0.1 default=10.0.0.1": "does not have the address fd00::1;",
		"":                          "does not have the address 10.0.0.1 and fd00::1;",
	} {
		got := givenAddresses(ips, host(t, on))
		if got.String() != "10.0.0.1,fd00::1" || !strings.Contains(got.Problem, want) || (got.Problem == "") != (want == "") {
			t.Errorf("on a host with %q: got %s, problem %q; want the problem %q", on, got, got.Problem, want)
		}
	}
}
