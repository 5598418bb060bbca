package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestHostsFile checks the hosts file of pods with and without the host network.
func TestHostsFile(t *testing.T) {
	aliases := []v1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"db", "db.example"}}, {IP: "2001:db8::7", Hostnames: []string{"six"}}}
	added := "\n# Entries added by HostAliases.\n192.0.2.7\tdb\tdb.example\n2001:db8::7\tsix\n"
	for name, test := range map[string]struct {
		spec v1.PodSpec
		ips  []string
		want string // after hostsHeader
	}{
		"name of the pod": {v1.PodSpec{}, []string{"10.0.0.2"}, "10.0.0.2\tweb-n1\n"},
		"two addresses":   {v1.PodSpec{}, []string{"10.0.0.2", "fd00::2"}, "10.0.0.2\tweb-n1\nfd00::2\tweb-n1\n"},
		"hostname":        {v1.PodSpec{Hostname: "www"}, []string{"10.0.0.2"}, "10.0.0.2\twww\n"},
		"subdomain":       {v1.PodSpec{Subdomain: "sub"}, []string{"10.0.0.2"}, "10.0.0.2\tweb-n1.sub.prod.svc.cluster.local\tweb-n1\n"},
		"aliases":         {v1.PodSpec{HostAliases: aliases}, []string{"10.0.0.2"}, "10.0.0.2\tweb-n1\n" + added},
	} {
		p := &manifest.Pod{Key: types.NamespacedName{Namespace: "prod", Name: "web-n1"}, Object: &v1.Pod{Spec: test.spec}}
		got := HostsFile(p, Node{ClusterDomain: "cluster.local"}, test.ips, "not this")
		if diff := cmp.Diff(test.want, strings.TrimPrefix(got, hostsHeader)); diff != "" || !strings.HasPrefix(got, hostsHeader) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{HostAliases: aliases}}}
	if got := HostsFile(p, Node{}, nil, "x"); got != "" {
		t.Errorf("pod without an address: got hosts file %q, want none", got)
	}
	p.Object.Spec.HostNetwork = true
	if got, want := HostsFile(p, Node{}, nil, "127.0.0.1 localhost\n"), "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n"+added; got != want {
		t.Errorf("pod with the host network: got hosts file %q, want %q", got, want)
	}
}
