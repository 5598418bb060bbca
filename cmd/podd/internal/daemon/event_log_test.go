package daemon

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/manifest"
)

// TestAdviceEvents checks that new advice is recorded once, as an event of the pod or node
// that it is about.
func TestAdviceEvents(t *testing.T) {
	web := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{web: {Key: web, UID: "u", Object: &v1.Pod{}}}}
	warn := func(pod types.NamespacedName, field string) manifest.Problem {
		return manifest.Problem{Severity: manifest.Warning, Pod: pod, FieldPath: field, Message: "m"}
	}
	set.Problems = []manifest.Problem{warn(web, "spec.imagee")}
	now := append([]manifest.Problem{warn(web, "spec.dnsPolicy"), warn(web, "spec.dnsConfig.searches"), warn(types.NamespacedName{}, "nameservers")}, set.Problems...)
	var got []string
	for _, e := range dnsWarningEvents(set, nil, now, poddtest.At) {
		got = append(got, e.Reason+" "+e.Pod.Name)
	}
	if want := "MissingClusterDNS web-n1,DNSConfigForming web-n1,CheckLimitsForResolvConf "; strings.Join(got, ",") != want {
		t.Errorf("got events %q, want %q", strings.Join(got, ","), want)
	}
	if got := dnsWarningEvents(set, now, now, poddtest.At); len(got) > 0 {
		t.Errorf("unchanged advice: got events %v, want none", got)
	}
}
