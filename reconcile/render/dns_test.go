package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"podd/manifest"
)

// TestParseResolvConf checks how lines of a resolv.conf are read.
func TestParseResolvConf(t *testing.T) {
	tests := []struct {
		name, text string
		want       DNS
	}{
		{"empty", "", DNS{}},
		{"comment and all keywords", "# by hand\nnameserver 192.0.2.1\nnameserver 2001:db8::1\nsearch a.example b.example\noptions ndots:2 rotate\n",
			DNS{[]string{"192.0.2.1", "2001:db8::1"}, []string{"a.example", "b.example"}, []string{"ndots:2", "rotate"}}},
		{"several servers, last search wins", "search one\nnameserver 192.0.2.1\nsearch two three\nnameserver 192.0.2.2",
			DNS{Servers: []string{"192.0.2.1", "192.0.2.2"}, Searches: []string{"two", "three"}}},
		{"domain counts as search", "domain a.example ignored\n", DNS{Searches: []string{"a.example"}}},
		{"last option of a name wins", "options ndots:1 rotate\noptions ndots:5",
			DNS{Options: []string{"ndots:5", "rotate"}}},
		{"dots", "search . a.example. \n", DNS{Searches: []string{"a.example"}}},
		{"spaces, tabs, CRLF", "\tnameserver\t192.0.2.1\r\n  search  x  \r\n", DNS{Servers: []string{"192.0.2.1"}, Searches: []string{"x"}}},
		{"invalid lines", "nameserver\nnameserver no-address\nsortlist 1.2.3.4\n;nameserver 192.0.2.9\n", DNS{}},
		{"address with a zone", "nameserver fe80::1%eth0\n", DNS{Servers: []string{"fe80::1%eth0"}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ParseResolvConf(tt.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// FuzzParseResolvConf checks that parsing a resolv.conf that was written from settings returns the
// same settings.
func FuzzParseResolvConf(f *testing.F) {
	f.Add("nameserver 192.0.2.1\nsearch a b\noptions ndots:5 ndots:1\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := ParseResolvConf(text)
		for i, o := range d.Options {
			for _, p := range d.Options[:i] {
				if optionName(o) == optionName(p) {
					t.Errorf("got option %q twice, want once", o)
				}
			}
		}
		again := "search " + strings.Join(d.Searches, " ") + "\noptions " + strings.Join(d.Options, " ") + "\n"
		for _, s := range d.Servers {
			again += "nameserver " + s + "\n"
		}
		if diff := cmp.Diff(d, ParseResolvConf(again)); diff != "" {
			t.Errorf("settings differ after writing and reading (-first +second):\n%s", diff)
		}
	})
}

// TestPodDNS checks the DNS settings of a pod by its policy.
func TestPodDNS(t *testing.T) {
	node := Node{
		DNS:           DNS{Servers: []string{"192.0.2.53"}, Searches: []string{"lan.example"}, Options: []string{"rotate"}},
		ClusterDNS:    []string{"10.96.0.10"},
		ClusterDomain: "cluster.local",
	}
	own, cluster := node.DNS, DNS{
		Servers:  []string{"10.96.0.10"},
		Searches: []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "lan.example"},
		Options:  []string{"ndots:5"},
	}
	alone, bare := node, node
	alone.ClusterDNS = nil
	bare.ClusterDomain = ""
	five := "7"
	tests := []struct {
		name string
		node Node
		spec v1.PodSpec
		want DNS
	}{
		{"no policy", node, v1.PodSpec{}, cluster},
		{"ClusterFirst", node, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, cluster},
		{"ClusterFirst with host network", node, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, own},
		{"ClusterFirstWithHostNet", node, v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet, HostNetwork: true}, cluster},
		{"ClusterFirst without a cluster", alone, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, own},
		{"no cluster domain", bare, v1.PodSpec{}, DNS{[]string{"10.96.0.10"}, []string{"lan.example"}, []string{"ndots:5"}}},
		{"Default", node, v1.PodSpec{DNSPolicy: v1.DNSDefault}, own},
		{"None", node, v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Nameservers: []string{"192.0.2.7"}}},
			DNS{Servers: []string{"192.0.2.7"}}},
		{"merged", node, v1.PodSpec{DNSConfig: &v1.PodDNSConfig{
			Nameservers: []string{"10.96.0.10", "192.0.2.7"},
			Searches:    []string{"cluster.local", "more.example"},
			Options:     []v1.PodDNSConfigOption{{Name: "ndots", Value: &five}, {Name: "edns0"}},
		}}, DNS{
			[]string{"10.96.0.10", "192.0.2.7"}, append(slices.Clone(cluster.Searches), "more.example"), []string{"ndots:7", "edns0"}}},
	}
	for _, tt := range tests {
		got := podDNS(podOf(tt.spec), tt.node)
		if diff := cmp.Diff(tt.want, DNS{got.Servers, got.Searches, got.Options}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestDNSLimits checks that the settings of a pod respect the limits of resolvers.
func TestDNSLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 60).Draw(t, "searches")
		var node Node
		for i := range count {
			length := rapid.IntRange(1, 300).Draw(t, "length")
			node.DNS.Searches = append(node.DNS.Searches, fmt.Sprintf("%0*d", length, i))
		}
		node.DNS.Servers = rapid.SliceOfN(rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}), 0, 9).Draw(t, "servers")
		d := podDNS(podOf(v1.PodSpec{}), node)
		if len(d.Servers) > 3 || len(d.Searches) > 32 || len(strings.Join(d.Searches, " ")) > 2048 {
			t.Fatalf("got %d servers and %d searches of %d characters, want at most what resolvers use", len(d.Servers), len(d.Searches), len(strings.Join(d.Searches, " ")))
		}
		at := -1
		for _, s := range d.Searches {
			i := slices.Index(node.DNS.Searches[at+1:], s)
			if i < 0 || len(s) > 253 {
				t.Fatalf("got search %q out of order or too long, want the order of the settings", s)
			}
			at += 1 + i
		}
	})
}

// podOf returns a pod with this spec.
func podOf(spec v1.PodSpec) *manifest.Pod {
	p := &manifest.Pod{UID: "u1", Hash: "v1:00", Object: &v1.Pod{Spec: spec}}
	p.Key.Namespace, p.Key.Name = "ns", "pod"
	p.Object.Namespace, p.Object.Name, p.Object.UID = "ns", "pod", "u1"
	return p
}
