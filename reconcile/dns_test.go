package reconcile_test

import (
	"sync/atomic"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile"
	"podd/reconcile/render"
)

// TestNodeDNS checks that pods get the name servers that the host got after podd was
// started.
func TestNodeDNS(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var now atomic.Pointer[render.DNS]
		now.Store(&render.DNS{})
		m.options = func(o *reconcile.Options) {
			o.Effects.DNS = func() (render.DNS, error) { return *now.Load(), nil }
		}
		m.start()
		a, b := pod(t, "a", web), pod(t, "b", web)
		m.setPods(a)
		m.settle()
		now.Store(&render.DNS{Servers: []string{"192.0.2.53"}})
		m.setPods(a, b)
		m.settle()
		calls := m.Calls("RunPodSandbox")
		if len(calls) != 2 {
			t.Fatalf("created sandboxes: got %d, want 2", len(calls))
		}
		for i, want := range []int{0, 1} {
			if got := calls[i].Request.(*cri.RunPodSandboxRequest).GetConfig().GetDnsConfig().GetServers(); len(got) != want {
				t.Errorf("DNS servers of sandbox %d: got %q, want %d", i, got, want)
			}
		}
	})
}
