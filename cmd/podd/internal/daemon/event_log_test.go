package daemon

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/manifest"
)

// TestDNSWarningEvents checks that each new warning about DNS has one event, whose subject is the pod
// or node that the warning is about. Problems of manifests have no event.
func TestDNSWarningEvents(t *testing.T) {
	web := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{web: {Key: web, UID: "u", Object: &v1.Pod{}}}}
	warn := func(pod types.NamespacedName, field string) manifest.Problem {
		return manifest.Problem{Severity: manifest.Warning, Pod: pod, FieldPath: field, Message: "m"}
	}
	set.Problems = []manifest.Problem{warn(web, "spec.imagee")}
	current := append([]manifest.Problem{warn(web, "spec.dnsPolicy"), warn(web, "spec.dnsConfig.searches"), warn(types.NamespacedName{}, "nameservers")}, set.Problems...)
	var got []string
	for _, e := range dnsWarningEvents(set, nil, current, poddtest.At) {
		got = append(got, e.Reason+" "+e.Pod.Name)
	}
	if want := "MissingClusterDNS web-n1,DNSConfigForming web-n1,CheckLimitsForResolvConf "; strings.Join(got, ",") != want {
		t.Errorf("got events %q, want %q", strings.Join(got, ","), want)
	}
	if got := dnsWarningEvents(set, current, current, poddtest.At); len(got) > 0 {
		t.Errorf("unchanged warnings: got events %v, want none", got)
	}
}
