package reconcile_test

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile"
	"podd/reconcile/node"
)

const onHost = `hostNetwork: true
containers:
- name: app
  image: "web:1"
  env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]
`

func nodeAddress(ip, problem string) node.Addresses {
	return node.Addresses{IPs: []netip.Addr{netip.MustParseAddr(ip)}, Problem: problem}
}

// statusAddresses returns the addresses of the node and of the pod in a published status.
func (m *machine) statusAddresses(name string) string {
	m.t.Helper()
	s := m.report(name).Pod.Status
	if len(s.HostIPs) != 1 || len(s.PodIPs) != 1 || s.HostIPs[0].IP != s.HostIP || s.PodIPs[0].IP != s.PodIP {
		m.t.Errorf("pod %s: got hostIPs %v and podIPs %v, want one of each, equal to hostIP and podIP", name, s.HostIPs, s.PodIPs)
	}
	return s.HostIP + " " + s.PodIP
}

// TestNodeAddresses changes the node's addresses. It checks that the statuses of pods and the
// environment of new containers have the new addresses. A finished pod keeps its earlier addresses.
func TestNodeAddresses(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.addresses = make(chan node.Addresses)
		published := atomic.Pointer[node.Addresses]{}
		m.options = func(o *reconcile.Options) {
			publish := o.Publish
			o.Publish = func(c reconcile.Change) { published.Store(&c.Addresses); publish(c) }
		}
		m.start()
		ended := pod(t, "job", "hostNetwork: true\nrestartPolicy: Never\ncontainers: [{name: job, image: \"job:1\", command: [sh, -c, \"exit 0\"]}]")
		web, other := pod(t, "web", "hostNetwork: true\n"+web), pod(t, "other", web)
		m.setPods(ended, web, other)
		m.settle()
		own := m.report("other").Pod.Status.PodIP
		m.addresses <- nodeAddress("198.51.100.7", "it is lost")
		m.settle()
		for name, want := range map[string]string{"web": "198.51.100.7 198.51.100.7", "other": "198.51.100.7 " + own, "job": "192.0.2.1 192.0.2.1"} {
			if got := m.statusAddresses(name); got != want {
				t.Errorf("%s: got addresses %s, want %s", name, got, want)
			}
		}
		if p := m.report("job").Pod.Status.Phase; p != v1.PodSucceeded {
			t.Errorf("job: got phase %s, want Succeeded", p)
		}
		if a := published.Load(); a.String() != "198.51.100.7" || a.Problem != "it is lost" {
			t.Errorf("published addresses: got %s with problem %q, want 198.51.100.7 with problem %q", a, a.Problem, "it is lost")
		}
		m.ForgetCalls()
		late := pod(t, "late", onHost)
		m.setPods(ended, web, other, late)
		m.settle()
		var env []string
		for _, kv := range m.Calls("CreateContainer")[0].Request.(*cri.CreateContainerRequest).GetConfig().GetEnvs() {
			if kv.GetKey() == "IP" {
				env = append(env, string(kv.GetValue()))
			}
		}
		if len(env) != 1 || env[0] != "198.51.100.7" {
			t.Errorf("variable with status.hostIP in the new container: got %q, want 198.51.100.7", env)
		}
	})
}

// listen listens on a port of an address, or on any free port if port is 0. It accepts no connection,
// but connecting succeeds. It returns the port and a function that stops listening.
func listen(t *testing.T, ip string, port int) (int, func()) {
	t.Helper()
	ln, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, port))
	if err != nil {
		t.Fatal(err)
	}
	return ln.Addr().(*net.TCPAddr).Port, func() { ln.Close() }
}

// TestPostStart_LostAddress checks that the postStart hook of a host-network pod does not fail
// while the host lacks the node's address. It fails once the host has the address.
func TestPostStart_LostAddress(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		lost := atomic.Bool{}
		lost.Store(true)
		m.options = func(o *reconcile.Options) {
			o.RenderNode.HostIPs = []string{"127.0.0.3"}
			o.Effects.IsLocal = func(string) bool { return !lost.Load() }
		}
		port, closed := listen(t, "127.0.0.3", 0)
		closed()
		m.start()
		m.setPods(pod(t, "web", onHost+fmt.Sprintf("  lifecycle: {postStart: {httpGet: {port: %d, path: /}}}", port)))
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if n := len(m.Calls("StopContainer")); n != 0 {
			t.Errorf("stops of the container while its address is lost: got %d, want none", n)
		}
		lost.Store(false)
		m.advance(6 * time.Minute) // longer than the back-off of the hook
		if len(m.Calls("StopContainer")) == 0 {
			t.Errorf("stops of the container after the host has the address and the hook has failed: got none, want at least one\n%s", m.state())
		}
	})
}

// TestProbes_LostAddress checks that a probe of a host-network pod does not fail while the host
// lacks the node's address, even after a restart of podd. The probe fails again as soon as the host
// has an address.
func TestProbes_LostAddress(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.addresses = make(chan node.Addresses)
		lost := atomic.Pointer[string]{}
		m.options = func(o *reconcile.Options) {
			o.RenderNode.HostIPs = []string{"127.0.0.3"}
			o.Effects.IsLocal = func(ip string) bool { is := lost.Load(); return is == nil || *is != ip }
		}
		port, closeOld := listen(t, "127.0.0.3", 0)
		m.start()
		m.setPods(pod(t, "web", onHost+fmt.Sprintf(`  livenessProbe: {tcpSocket: {port: %[1]d}, periodSeconds: 1, failureThreshold: 1}
  readinessProbe: {tcpSocket: {port: %[1]d}, periodSeconds: 1, failureThreshold: 1}`, port)))
		m.settle()
		m.wantProbeState("web", "true true True")

		m.ForgetCalls()
		lost.Store(new("127.0.0.3"))
		closeOld()
		m.advance(time.Minute)
		m.wantProbeState("web", "true true True")
		m.wantCalls()
		m.restart()
		m.advance(time.Minute)
		m.wantProbeState("web", "true true True")
		m.wantCalls()

		_, closeNew := listen(t, "127.0.0.4", port)
		m.addresses <- nodeAddress("127.0.0.4", "")
		m.advance(time.Minute)
		m.wantProbeState("web", "true true True")
		m.wantCalls()

		closeNew()
		m.advance(3 * time.Second)
		if len(m.Calls("StopContainer")) == 0 {
			t.Errorf("stops of the container after the host has the address and the probe has failed: got none, want at least one\n%s", m.state())
		}
	})
}
