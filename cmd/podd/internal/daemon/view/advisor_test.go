package view

import (
	"errors"
	"strings"
	"testing"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
	"podd/reconcile"
	"podd/reconcile/render"
	"podd/server"
)

// TestAdvisor checks the warnings about a pod and a node with too many name servers. The warning about
// the pod must have the position of the field in the manifest. A missing --cluster-dns must be reported
// only as an event.
func TestAdvisor(t *testing.T) {
	f := decode.File([]byte(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  dnsPolicy: ClusterFirst
  dnsConfig:
    nameservers: [198.51.100.1]
  containers: [{name: main, image: i:1}]
`), decode.Options{Source: "/a", Path: "/a/web.yaml", NodeName: "n"})
	b := merge.Files("/a", manifest.KindFile, f)
	b.IsComplete = true
	servers, failed := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}, error(nil)
	v := NewPublisher(Options{
		Base:    server.View{Node: "n", Version: "v1"},
		Advisor: NewAdvisor(render.Node{}, "/etc/resolv.conf", func() (render.DNS, error) { return render.DNS{Servers: servers}, failed }),
	})
	const advised = "/a/web.yaml:5:3: warning: spec.dnsPolicy: ClusterFirst has the effect of Default on this node, because --cluster-dns is not set"
	check := func(want ...string) {
		t.Helper()
		findings := v.Publish(reconcile.Change{Set: merge.Batches([]manifest.Batch{b}), SetChanged: true})
		var got []string
		for _, p := range v.Latest.View().Problems {
			got = append(got, p.String())
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if advice := findings.EventOnlyProblems; len(advice) != 1 || advice[0].String() != advised {
			t.Errorf("got event-only problems %v, want one: %q", advice, advised)
		}
	}
	check(
		"/a/web.yaml:7:5: warning: spec.dnsConfig.nameservers: together with those of the node and the cluster, there are 5 name servers, but resolvers use only 3; omitted: 192.0.2.4, 198.51.100.1",
		"/etc/resolv.conf: warning: nameservers: there are 4 name servers, but resolvers use only 3; omitted: 192.0.2.4",
	)
	servers = servers[:2] // with the name server of the pod there are 3, which is not too many
	check()
	servers, failed = nil, errors.New("reading the node's DNS: permission denied")
	check() // no warning about the error, because node.DNSWatcher reports it
}
