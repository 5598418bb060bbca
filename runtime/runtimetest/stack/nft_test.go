package stack

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const masquerades = `table inet cni_plugins_masquerade { # handle 5
	comment "Masquerading for plugins from github.com/containernetworking/plugins"
	chain masq_checks { # handle 1
		comment "Masquerade traffic from certain IPs to any (non-multicast) IP outside their subnet"
		ip saddr 10.88.0.3 ip daddr != 10.88.0.0/24 masquerade comment "1f-2e, net: podds0, if: eth0, id: 42" # handle 7
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

func TestParseRulesTakesOnlyTheSubnets(t *testing.T) {
	subnet := netip.MustParsePrefix("10.88.1.0/24")
	got := append(parseRules("inet cni_plugins_masquerade", masquerades, subnet), parseRules("ip cni_hostport", hostPorts, subnet)...)
	want := []rule{
		{"inet cni_plugins_masquerade", "masq_checks", "8"},
		{"ip cni_hostport", "hostports", "11"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rule{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHasPods(t *testing.T) {
	for _, test := range []struct {
		name, listing string
		want          bool
	}{
		{"rules of pods", masquerades, true},
		{"the framework only", `table inet cni_plugins_masquerade { # handle 5
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
		if got := hasPods(test.listing); got != test.want {
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
		{[]string{""}, false},
	} {
		if got := s.isOwn(test.args); got != test.want {
			t.Errorf("%q: got %v, want %v", test.args, got, test.want)
		}
	}
}

func TestInside(t *testing.T) {
	for path, want := range map[string]bool{"/a/b/c": true, "/a/b": false, "/a/bc": false, "/a": false, "/": false} {
		if got := inside(path, "/a/b"); got != want {
			t.Errorf("%s inside /a/b: got %v, want %v", path, got, want)
		}
	}
}
