//go:build e2e

package cluster

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/netns"
)

// reachable makes the API server reachable in the network namespace of the test's
// goroutine, at the same loopback address.
func (p *controlPlane) reachable(t *testing.T) {
	t.Helper()
	server, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", server.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", server.Host)
				if err != nil {
					return // podd sees that its connection ends
				}
				defer out.Close()
				go func() {
					_, _ = io.Copy(out, in)
					out.Close()
				}()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// TestNodeAddressChanges: the Node and the pods on the host's network have the present
// address of the host in the cluster, from before DHCP on, and no container is restarted.
func TestNodeAddressChanges(t *testing.T) {
	a := newAgent(t, "n19")
	stored := filepath.Join(a.dir, "root", "node-address")
	_ = os.Remove(stored) // by an earlier run with -count
	a.netns = netns.Enter(t)
	plane.reachable(t)
	a.start()
	n := a.ready()
	if slices.ContainsFunc(n.Status.Addresses, func(a v1.NodeAddress) bool { return a.Type == v1.NodeInternalIP }) {
		t.Errorf("before DHCP: the Node has the addresses %v", n.Status.Addresses)
	}
	a.write("web", webPod("web", "1000001"))
	m := a.mirrored("web", "ready", isReady)
	if s := m.Status; s.HostIP != "" || s.PodIP != "" {
		t.Errorf("before DHCP: hostIP and podIP of the mirror pod are %q and %q", s.HostIP, s.PodIP)
	}
	follows := func(address string) {
		t.Helper()
		a.eventually("the Node has "+address, func() error {
			n, err := plane.node(a.node)
			if err == nil && (len(n.Status.Addresses) != 2 || n.Status.Addresses[0] != v1.NodeAddress{Type: v1.NodeInternalIP, Address: address}) {
				err = fmt.Errorf("it has %v", n.Status.Addresses)
			}
			return err
		})
		now := a.mirrored("web", "at "+address, func(m *v1.Pod) bool {
			s := m.Status
			return s.HostIP == address && s.PodIP == address && len(s.HostIPs) == 1 && len(s.PodIPs) == 1 && isReady(m)
		})
		if containerOf(now) != containerOf(m) || now.UID != m.UID {
			t.Errorf("at %s the pod is %s in %s, was %s in %s", address, now.UID, containerOf(now), m.UID, containerOf(m))
		}
	}
	netns.IP(t, "addr add 10.61.0.2/24 dev uplink")
	netns.IP(t, "route add default via 10.61.0.1")
	follows("10.61.0.2")
	a.eventually("the address is stored", func() error {
		text, err := os.ReadFile(stored)
		if err == nil && !strings.Contains(string(text), "10.61.0.2") {
			err = fmt.Errorf("the file contains %q", text)
		}
		return err
	})

	// The lease ends, podd crashes, and there is another lease.
	netns.IP(t, "addr del 10.61.0.2/24 dev uplink")
	a.tells("this host has lost the address 10.61.0.2", true)
	a.kill()
	a.start()
	a.tells("this host has lost the address 10.61.0.2", true)
	follows("10.61.0.2")
	netns.IP(t, "addr add 10.62.0.3/24 dev uplink")
	netns.IP(t, "route add default via 10.62.0.1")
	follows("10.62.0.3")
	a.tells("has lost the address", false)
}
