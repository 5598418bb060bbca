//go:build e2e

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/runtime/runtimetest/netns"
	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// hostNetworkPod returns a pod on the host's network. Its probes use the pod's address, which is
// the node's address. The first failed liveness probe restarts the container, so that a probe at a
// wrong address is noticed. The timeout is long because a busy host may take seconds to respond.
func (d *daemon) hostNetworkPod(name string, port int32) *v1.Pod {
	c := v1.Container{Name: "web", Image: stack.WebImage, Env: []v1.EnvVar{{Name: "PORT", Value: fmt.Sprint(port)}}}
	get := v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(port)}}
	c.LivenessProbe = &v1.Probe{PeriodSeconds: 1, TimeoutSeconds: 20, FailureThreshold: 1, ProbeHandler: get}
	c.ReadinessProbe = c.LivenessProbe.DeepCopy()
	c.StartupProbe = &v1.Probe{PeriodSeconds: 1, TimeoutSeconds: 20, FailureThreshold: 60, ProbeHandler: get}
	p := d.pod(name, c, addressReporter(name))
	p.Spec.HostNetwork = true
	return p
}

// untilAddress waits until a pod on the host's network is ready at the given address and none of
// its containers has been restarted.
func (d *daemon) untilAddress(pod, address string) {
	d.t.Helper()
	d.until(pod+" has "+address, func(v *server.View) error { return checkAddress(d.find(v, pod), address) })
}

// checkKeepsAddress checks for some seconds that the pod keeps the address and that none of its
// containers is restarted.
func (d *daemon) checkKeepsAddress(pod, address string, seconds int) {
	d.t.Helper()
	d.consistently(seconds, pod+" has "+address, func(v *server.View) error { return checkAddress(d.find(v, pod), address) })
}

// checkAddress returns an error unless a pod is ready, its status has the given address as the only
// pod IP and host IP, and no container of the pod has been restarted.
func checkAddress(p *server.PodView, address string) error {
	if p == nil {
		return fmt.Errorf("got no pod, want one with the address %s", address)
	}
	s := p.Pod.Status
	for _, c := range s.ContainerStatuses {
		if c.RestartCount != 0 {
			return fmt.Errorf("container %s: got %d restarts, want 0", c.Name, c.RestartCount)
		}
	}
	if got := []string{s.HostIP, s.PodIP}; !slices.Equal(got, []string{address, address}) || len(s.HostIPs) != 1 || len(s.PodIPs) != 1 || !p.Ready {
		return fmt.Errorf("got hostIP and podIP %q, hostIPs %v, podIPs %v, ready %v: %s; want only %s and a ready pod", got, s.HostIPs, s.PodIPs, p.Ready, p.Why, address)
	}
	return nil
}

// untilNodeAddress waits until the Node and the serving certificate contain the given address.
func (d *daemon) untilNodeAddress(address string) {
	d.t.Helper()
	d.eventually("the Node has "+address, func() error {
		body, err := d.get(d.t.Context(), "/api/v1/nodes/"+d.host)
		if err != nil {
			return err
		}
		defer body.Close()
		var n v1.Node
		if err := json.NewDecoder(body).Decode(&n); err != nil {
			return err
		}
		if a := n.Status.Addresses; len(a) != 2 || a[0].Type != v1.NodeInternalIP || a[0].Address != address {
			return fmt.Errorf("got Node addresses %v, want the InternalIP %s first", a, address)
		}
		return nil
	})
	d.eventually("the serving certificate has "+address, func() error {
		c, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.api), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		defer c.Close()
		if leaf := c.ConnectionState().PeerCertificates[0]; !slices.ContainsFunc(leaf.IPAddresses, net.ParseIP(address).Equal) {
			return fmt.Errorf("got addresses %v in the serving certificate, want %s among them", leaf.IPAddresses, address)
		}
		return nil
	})
}

// TestAddressesChange runs podd and its runtime in a network namespace in which addresses, links
// and routes are added and removed. podd starts before DHCP has set an address.
func TestAddressesChange(t *testing.T) {
	t.Parallel()
	ns := netns.Enter(t)
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.netns, d.api = ns, 10250
	d.start()
	d.apply(d.hostNetworkPod("web", 8080))
	d.untilApplied("web")
	was := d.container("web", "web")
	d.untilAddress("web", "127.0.0.1")
	if got := d.readTrace("web-vars"); got != "127.0.0.1 127.0.0.1 127.0.0.1 127.0.0.1" {
		t.Errorf("before DHCP: got the variables %s, want 127.0.0.1 four times", got)
	}

	// The first DHCP lease.
	netns.RunIP(t, "addr add 10.61.0.2/24 dev uplink")
	netns.RunIP(t, "route add default via 10.61.0.1")
	d.untilAddress("web", "10.61.0.2")
	d.untilNodeAddress("10.61.0.2")
	d.eventually("podd has stored the address", func() error {
		text, err := os.ReadFile(filepath.Join(d.root(), "node-address"))
		if err == nil && !strings.Contains(string(text), "10.61.0.2") {
			err = fmt.Errorf("got file content %q, want 10.61.0.2 in it", text)
		}
		return err
	})

	// The DHCP lease ends. Now only a bridge, whose address podd must not use, has an address. podd
	// crashes before the next DHCP lease.
	netns.RunIP(t, "link add cni0 type bridge")
	netns.RunIP(t, "link set cni0 up")
	netns.RunIP(t, "addr add 10.88.0.1/24 dev cni0")
	netns.RunIP(t, "addr del 10.61.0.2/24 dev uplink")
	d.untilProblem("this host has lost the address 10.61.0.2")
	d.checkKeepsAddress("web", "10.61.0.2", 5)
	d.crash()
	d.untilProblem("this host has lost the address 10.61.0.2")
	d.untilAddress("web", "10.61.0.2")
	d.untilNodeAddress("10.61.0.2")
	d.checkKeepsAddress("web", "10.61.0.2", 3)
	netns.RunIP(t, "addr add 10.62.0.3/24 dev uplink")
	netns.RunIP(t, "route add default via 10.62.0.1")
	d.untilAddress("web", "10.62.0.3")
	d.untilNodeAddress("10.62.0.3")
	if v, err := d.state(); err != nil || len(v.Problems) != 0 {
		t.Errorf("after the new DHCP lease: got problems %v, error %v, want none", problems(v), err)
	}

	// The link goes down for a while.
	netns.RunIP(t, "link set uplink down")
	d.checkKeepsAddress("web", "10.62.0.3", 5)
	netns.RunIP(t, "link set uplink up")
	netns.RunIP(t, "route add default via 10.62.0.1")
	d.checkKeepsAddress("web", "10.62.0.3", 2)

	// The host gets a second address, and then the default route uses this address.
	netns.RunIP(t, "addr add 10.63.0.4/24 dev wire")
	d.checkKeepsAddress("web", "10.62.0.3", 2)
	netns.RunIP(t, "route replace default via 10.63.0.1")
	d.untilAddress("web", "10.63.0.4")
	d.untilNodeAddress("10.63.0.4")
	netns.RunIP(t, "addr del 10.62.0.3/24 dev uplink")
	d.checkKeepsAddress("web", "10.63.0.4", 3)
	if now := d.container("web", "web"); now != was {
		t.Errorf("after all changes of addresses: got container %+v, want %+v", now, was)
	}

	// A container that starts after the changes gets the current address, also if podd has crashed before.
	d.crash()
	d.apply(d.hostNetworkPod("late", 8081))
	d.untilAddress("late", "10.63.0.4")
	if got := d.readTrace("late-vars"); got != "10.63.0.4 10.63.0.4 10.63.0.4 10.63.0.4" {
		t.Errorf("pod late: got the variables %s, want 10.63.0.4 four times", got)
	}

	// A failed probe at the node's address restarts the container.
	d.untilAddress("web", "10.63.0.4")
	if err := unix.Kill(d.container("web", "web").PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d.untilPod("is restarted", "web", func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.Name == "web" && c.RestartCount == 1 {
				return nil
			}
		}
		return fmt.Errorf("got statuses %+v, want 1 restart of container web", p.Pod.Status.ContainerStatuses)
	})
}

// TestAddress_NodeIPIsMissing sets --node-ip to an address that the host has only temporarily. While
// the host does not have the address, podd must report this. A pod must keep the address and must not
// be restarted.
func TestAddress_NodeIPIsMissing(t *testing.T) {
	t.Parallel()
	ns := netns.Enter(t)
	d := newDaemon(t, stack.ForTest(t, stack.Options{}), "--node-ip", "10.61.0.2")
	d.netns = ns
	netns.RunIP(t, "addr add 10.62.0.3/24 dev uplink")
	netns.RunIP(t, "route add default via 10.62.0.1")
	d.start()
	d.untilProblem("--node-ip: this host does not have the address 10.61.0.2")
	netns.RunIP(t, "addr add 10.61.0.2/24 dev uplink")
	d.until("there is no problem", func(v *server.View) error {
		if len(v.Problems) > 0 {
			return fmt.Errorf("got problems %q, want none", problems(v))
		}
		return nil
	})
	d.apply(d.hostNetworkPod("web", 8080))
	d.untilAddress("web", "10.61.0.2")
	was := d.container("web", "web")
	netns.RunIP(t, "addr del 10.61.0.2/24 dev uplink")
	d.untilProblem("--node-ip: this host does not have the address 10.61.0.2")
	d.checkKeepsAddress("web", "10.61.0.2", 5)
	d.consistently(3, "the container keeps running", func(*server.View) error {
		if now := d.container("web", "web"); now != was {
			return fmt.Errorf("got container %+v, want %+v", now, was)
		}
		return nil
	})
}
