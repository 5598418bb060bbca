package render

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestAdviseDNS checks the advice about DNS settings that have no effect.
func TestAdviseDNS(t *testing.T) {
	many := func(n int, of string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(of, i))
		}
		return all
	}
	node := Node{DNS: DNS{Servers: many(2, "192.0.2.%d"), Searches: []string{"lan.example"}}}
	cluster := node
	cluster.ClusterDNS, cluster.ClusterDomain = []string{"10.96.0.10"}, "cluster.local"
	crowded := Node{DNS: DNS{Servers: many(5, "192.0.2.%d"), Searches: many(33, "s%d")}}
	with := func(c v1.PodDNSConfig) v1.PodSpec { return v1.PodSpec{DNSPolicy: v1.DNSDefault, DNSConfig: &c} }
	for _, test := range []struct {
		name string
		node Node
		spec v1.PodSpec
		want string
	}{
		{"no settings", node, v1.PodSpec{DNSPolicy: v1.DNSDefault}, ""},
		{"room for one more server", node, with(v1.PodDNSConfig{Nameservers: many(1, "198.51.100.%d")}), ""},
		{"too many servers", node, with(v1.PodDNSConfig{Nameservers: many(3, "198.51.100.%d")}),
			"spec.dnsConfig.nameservers: together with those of the node and the cluster, there are 5 name servers, but resolvers use only 3; omitted: 198.51.100.1, 198.51.100.2"},
		{"too many paths", node, with(v1.PodDNSConfig{Searches: many(33, "s%d")}), "spec.dnsConfig.searches: together with those of the node and the cluster, there are 34 search paths, of which 2 are omitted"},
		{"paths too long in total", node, with(v1.PodDNSConfig{Searches: many(20, strings.Repeat("a", 120)+"%d")}), "there are 21 search paths, of which 4 "},
		{"a path too long", node, with(v1.PodDNSConfig{Searches: []string{strings.Repeat("a", 254)}}), "there are 2 search paths, of which 1 "},
		{"settings of the node only", crowded, v1.PodSpec{DNSPolicy: v1.DNSDefault}, ""},
		{"settings of the node and the pod", crowded, with(v1.PodDNSConfig{Searches: []string{"more"}}), "there are 34"},
		{"no cluster", node, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, "spec.dnsPolicy: ClusterFirst has the effect of Default on this node"},
		{"no cluster, host network", node, v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet, HostNetwork: true}, "spec.dnsPolicy: ClusterFirstWithHostNet has the effect of Default on this node"},
		{"host network without cluster DNS", node, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, ""},
		{"cluster", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, ""},
	} {
		p := podOf(test.spec)
		p.Origin.Fields = map[string]manifest.Position{"spec.dnsPolicy": {Line: 1}}
		var got []string
		for _, a := range AdviseDNS(p, test.node) {
			got = append(got, a.Field+": "+a.Message)
			if a.EventOnly != (test.name == "no cluster") {
				t.Errorf("%s: got EventOnly %t, want %t", test.name, a.EventOnly, !a.EventOnly)
			}
		}
		if text := strings.Join(got, "\n"); !strings.Contains(text, test.want) || (text == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", test.name, text, test.want)
		}
		p.Origin.Fields = nil // the policy is a default
		if strings.Contains(test.want, "dnsPolicy") && len(AdviseDNS(p, test.node)) > 0 {
			t.Errorf("%s: got advice about a default, want none", test.name)
		}
	}
	if all := AdviseNodeDNS(crowded.DNS); len(all) != 2 || len(AdviseNodeDNS(node.DNS)) != 0 {
		t.Errorf("advice about too many DNS servers and search domains: got %v, want two; about the other node: got %v, want none", all, AdviseNodeDNS(node.DNS))
	}
}

// TestHostnameTooLong checks that a full name that is too long is rejected, not truncated.
func TestHostnameTooLong(t *testing.T) {
	yes := true
	for length, want := range map[int]bool{64 - len(".s.ns.svc.cluster.local"): true, 65 - len(".s.ns.svc.cluster.local"): false} {
		p := podOf(v1.PodSpec{Hostname: strings.Repeat("a", length), Subdomain: "s", SetHostnameAsFQDN: &yes})
		_, err := Sandbox(SandboxInput{Pod: p, Node: Node{ClusterDomain: "cluster.local"}})
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "has 65 characters") {
			t.Errorf("hostname of %d characters: got error %v, want accepted %t", length, err, want)
		}
	}
}
