package main

import (
	"errors"
	"strings"
	"testing"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/render"
	"podd/server"
)

// TestAdvisor: what of a pod's DNS does not reach its resolvers is shown with
// its place, and what of the node's does not, once; a cluster's DNS that is not
// there is told of and no problem.
func TestAdvisor(t *testing.T) {
	f := manifest.Decode([]byte(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  dnsPolicy: ClusterFirst
  dnsConfig:
    nameservers: [198.51.100.1]
  containers: [{name: main, image: i:1}]
`), manifest.Options{Source: "/a", Path: "/a/web.yaml", Node: "n"})
	b := manifest.Collect("/a", manifest.KindFile, f)
	b.Complete = true
	v := newViewer(server.View{Node: "n", Version: "v1"})
	servers, failed := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}, error(nil)
	v.advisor = &advisor{render.Node{}, "/etc/resolv.conf", func() (render.DNS, error) { return render.DNS{Servers: servers}, failed }}
	const passing = "/a/web.yaml:5:3: warning: spec.dnsPolicy: ClusterFirst is as Default here; this podd was told of no cluster's DNS (--cluster-dns)"
	tells := func(want ...string) {
		t.Helper()
		v.publish(reconcile.Change{Set: manifest.Merge([]manifest.Batch{b}), SetChanged: true})
		var got []string
		for _, p := range v.latest.View().Problems {
			got = append(got, p.String())
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if told := v.told; len(told) != 1 || told[0].String() != passing {
			t.Errorf("told besides: %v", told)
		}
	}
	tells(
		"/a/web.yaml:7:5: warning: spec.dnsConfig.nameservers: with the node's and the cluster's there are 5, of which resolvers ask 3; left out: 192.0.2.4, 198.51.100.1",
		"/etc/resolv.conf: warning: nameservers: there are 4, of which resolvers ask 3; left out: 192.0.2.4",
	)
	servers = servers[:2] // the file was edited meanwhile
	tells()
	servers, failed = nil, errors.New("reading the node's DNS: permission denied")
	tells("/etc/resolv.conf: error: reading the node's DNS: permission denied; no pod starts until it can be read")
}
