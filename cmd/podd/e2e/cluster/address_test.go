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

// makeReachable makes the API server reachable at the same loopback address in the network namespace of
// the test's goroutine. makeReachable listens at this address and copies the data of each connection to
// the API server in the initial namespace.
func (p *controlPlane) makeReachable(t *testing.T) {
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
				return // the end of the test has closed the listener
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", server.Host)
				if err != nil {
					return // closes podd's connection
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

// TestNodeAddressChanges checks that the Node and the pods on the host's network have the
// current address of the host. podd starts while the host has no address, as before the first DHCP
// lease. While the host has lost its address, the Node and the pods must keep that address. No
// container may be restarted.
func TestNodeAddressChanges(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n19")
	stored := filepath.Join(a.dir, "root", "node-address")
	_ = os.Remove(stored) // from an earlier run with -count
	a.netns = netns.Enter(t)
	plane.makeReachable(t)
	a.start()
	n := a.untilReady()
	if slices.ContainsFunc(n.Status.Addresses, func(a v1.NodeAddress) bool { return a.Type == v1.NodeInternalIP }) {
		t.Errorf("before DHCP: got Node addresses %v, want no InternalIP", n.Status.Addresses)
	}
	a.write("web", webPod("web", "1000001"))
	m := a.untilMirror("web", "ready", isReady)
	if s := m.Status; s.HostIP != "" || s.PodIP != "" {
		t.Errorf("before DHCP: mirror pod: got hostIP %q and podIP %q, want none", s.HostIP, s.PodIP)
	}
	untilAddress := func(address string) {
		t.Helper()
		a.eventually("the Node has "+address, func() error {
			n, err := plane.node(a.node)
			if err == nil && (len(n.Status.Addresses) != 2 || n.Status.Addresses[0] != v1.NodeAddress{Type: v1.NodeInternalIP, Address: address}) {
				err = fmt.Errorf("got %v", n.Status.Addresses)
			}
			return err
		})
		now := a.untilMirror("web", "at "+address, func(m *v1.Pod) bool {
			s := m.Status
			return s.HostIP == address && s.PodIP == address && len(s.HostIPs) == 1 && len(s.PodIPs) == 1 && isReady(m)
		})
		if containerID(now) != containerID(m) || now.UID != m.UID {
			t.Errorf("with the host address %s: got mirror pod %s with container %s, want mirror pod %s with container %s", address, now.UID, containerID(now), m.UID, containerID(m))
		}
	}
	netns.RunIP(t, "addr add 10.61.0.2/24 dev uplink")
	netns.RunIP(t, "route add default via 10.61.0.1")
	untilAddress("10.61.0.2")
	a.eventually("podd has stored the address", func() error {
		text, err := os.ReadFile(stored)
		if err == nil && !strings.Contains(string(text), "10.61.0.2") {
			err = fmt.Errorf("%s: got %q, want the address 10.61.0.2 in it", stored, text)
		}
		return err
	})

	// The DHCP lease ends, podd crashes and starts again, and a new DHCP lease sets another address.
	netns.RunIP(t, "addr del 10.61.0.2/24 dev uplink")
	a.untilPs("this host has lost the address 10.61.0.2", true)
	a.kill()
	a.start()
	a.untilPs("this host has lost the address 10.61.0.2", true)
	untilAddress("10.61.0.2")
	netns.RunIP(t, "addr add 10.62.0.3/24 dev uplink")
	netns.RunIP(t, "route add default via 10.62.0.1")
	untilAddress("10.62.0.3")
	a.untilPs("has lost the address", false)
}
