package reconcile_test

import (
	"sync/atomic"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile"
	"podd/reconcile/render"
)

// TestNodeDNS: a machine that is given its name servers after podd has started
// gives them to the pods that start then.
func TestNodeDNS(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var now atomic.Pointer[render.DNS]
		now.Store(&render.DNS{})
		m.options = func(o *reconcile.Options) {
			o.Effects.DNS = func() (render.DNS, error) { return *now.Load(), nil }
		}
		m.start()
		a, b := pod(t, "a", web), pod(t, "b", web)
		m.want(a)
		m.settle()
		now.Store(&render.DNS{Servers: []string{"192.0.2.53"}})
		m.want(a, b)
		m.settle()
		calls := m.Calls("RunPodSandbox")
		if len(calls) != 2 {
			t.Fatalf("%d sandboxes", len(calls))
		}
		for i, want := range []int{0, 1} {
			if got := calls[i].Request.(*cri.RunPodSandboxRequest).GetConfig().GetDnsConfig().GetServers(); len(got) != want {
				t.Errorf("sandbox %d has the servers %q", i, got)
			}
		}
	})
}
