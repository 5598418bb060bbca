package stack

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/runtime/runtimetest/stack/reservation"
)

const masquerades = `table inet cni_plugins_masquerade { # handle 5
	comment "Masquerading for plugins from github.com/containernetworking/plugins"
	chain masq_checks { # handle 1
		comment "Masquerade traffic from certain IPs to any (non-multicast) IP outside their subnet"
		ip saddr 10.88.0.3 ip daddr != 10.88.0.0/24 masquerade comment "1f-2e, net: podds0, if: eth0, id: 42" # handle 7
		ip6 saddr fd70:6f64:6400:1::3 ip6 daddr != fd70:6f64:6400:1::/64 masquerade comment "1f-2e, net: podds1, if: eth0, id: 43" # handle 17
		ip6 saddr fd70:6f64:6400:11::3 ip6 daddr != fd70:6f64:6400:11::/64 masquerade comment "1f-2e, net: podds17, if: eth0, id: 45" # handle 18
		ip saddr 10.88.1.3 ip daddr != 10.88.1.0/24 masquerade comment "1f-2e, net: podds1, if: eth0, id: 43" # handle 8
	}

	chain postrouting { # handle 2
		type nat hook postrouting priority 100; policy accept;
		ip daddr 224.0.0.0/4 return # handle 9
		goto masq_checks # handle 10
	}
}
`

const hostPorts = `table ip cni_hostport { # handle 6
	chain hostports { # handle 1
		tcp dport 80 dnat to 10.88.1.3:8080 comment "43" # handle 11
		tcp dport 81 dnat to 10.88.11.3:8080 comment "44" # handle 12
	}
}
`

const hostPorts6 = `table ip6 cni_hostport { # handle 9
	chain hostports { # handle 1
		tcp dport 80 dnat to [fd70:6f64:6400:1::3]:8080 comment "43" # handle 4
	}
}
`

func TestParseRules_OnlySubnets(t *testing.T) {
	s := &Stack{state: state{Reservation: reservation.Reservation{Number: 1, Subnet: netip.MustParsePrefix("10.88.1.0/24")}}}
	var got []rule
	for table, listing := range map[string]string{"inet cni_plugins_masquerade": masquerades, "ip cni_hostport": hostPorts, "ip6 cni_hostport": hostPorts6} {
		got = append(got, parseRules(table, listing, s.subnets())...)
	}
	slices.SortFunc(got, func(a, b rule) int { return strings.Compare(a.table+a.handle, b.table+b.handle) })
	want := []rule{
		{"inet cni_plugins_masquerade", "masq_checks", "17"},
		{"inet cni_plugins_masquerade", "masq_checks", "8"},
		{"ip cni_hostport", "hostports", "11"},
		{"ip6 cni_hostport", "hostports", "4"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rule{})); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestHasPods(t *testing.T) {
	for _, test := range []struct {
		name, listing string
		want          bool
	}{
		{"rules of pods", masquerades, true},
		{"rules of no pod", `table inet cni_plugins_masquerade { # handle 5
	comment "Masquerading for plugins from github.com/containernetworking/plugins"
	chain masq_checks { # handle 1
		comment "Masquerade traffic from certain IPs"
	}

	chain postrouting { # handle 2
		goto masq_checks # handle 10
	}
}
`, false},
	} {
		if got := hasPodRules(test.listing); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestIsOwn(t *testing.T) {
	s := &Stack{state: state{Dir: "/x/.run"}}
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{"/cache/containerd", "--config", "/x/.run/stack/containerd.toml"}, true},
		{[]string{"/cache/containerd-shim-runc-v2", "-namespace", "k8s.io", "-address", "/x/.run/containerd.sock"}, true},
		{[]string{"/cache/containerd-shim-runc-v2", "-address", "/x/.run2/containerd.sock"}, false},
		{[]string{"vi", "/x/.run/stack/containerd.toml"}, false},
		{[]string{"/usr/bin/containerd"}, false},
		{[]string{"/usr/bin/conmon", "-c", "1", "--runtime-arg", "--root=/x/.run/stack/runc/crio"}, true},
		{[]string{"/usr/bin/conmon", "-c", "1", "--runtime-arg", "--root=/x/.run2/stack/runc/crio"}, false},
		{[]string{"skopeo", "copy", "containers-storage:[overlay@/x/.run/stack/root+/x/.run/stack/run]web"}, true},
		{[]string{"runc"}, false},
		{[]string{""}, false},
	} {
		if got := s.isOwn(test.args); got != test.want {
			t.Errorf("command line %q: got own: %v, want %v", test.args, got, test.want)
		}
	}
}

func TestIsBelow(t *testing.T) {
	for path, want := range map[string]bool{"/a/b/c": true, "/a/b": false, "/a/bc": false, "/a": false, "/": false} {
		if got := isBelow(path, "/a/b"); got != want {
			t.Errorf("%s is below /a/b: got %v, want %v", path, got, want)
		}
	}
}

const crioListing = `table ip crio-hostports { # handle 141
	comment "HostPort rules created by CRI-O"
	map hostports { # handle 1
		type inet_proto . inet_service : ipv4_addr . inet_service
		comment "hostports on all local IPs (protocol . hostPort -> podIP . podPort)"
		elements = { 6 . 18081 comment "NEMYX3BS6MZRTZV4" : 10.88.0.3 . 8080,
			     6 . 18099 comment "4GUSIFG7N2SVTVIQ" : 10.88.1.2 . 80 }
	}

	map hostipports { # handle 2
		type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
		comment "hostports on specific IPs (hostIP . protocol . hostPort -> podIP . podPort)"
	}

	set hairpins { # handle 11
		type ipv4_addr . ipv4_addr
		comment "hostport hairpin connections"
		elements = { 10.88.1.2 . 10.88.1.2 comment "4GUSIFG7N2SVTVIQ",
			     10.88.0.3 . 10.88.0.3 comment "NEMYX3BS6MZRTZV4" }
	}

	chain hostports { # handle 3
		dnat ip to ip daddr . meta l4proto . th dport map @hostipports # handle 23
	}
}
`

func TestParseElements_OnlySubnets(t *testing.T) {
	got := parseElements("ip crio-hostports", crioListing, []netip.Prefix{netip.MustParsePrefix("10.88.0.0/24")})
	want := []element{
		{"ip crio-hostports", "hostports", "6 . 18081"},
		{"ip crio-hostports", "hairpins", "10.88.0.3 . 10.88.0.3"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
