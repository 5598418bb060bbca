//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/runtime/runtimetest/stack"
)

// TestDualStack checks the addresses of pods on a network with IPv4 and IPv6. The pod status, the
// environment variables and the hosts file must contain both addresses. The first address must have
// the family of the node's primary address, and probes must use it.
func TestDualStack(t *testing.T) {
	t.Parallel()
	on := stack.ForTest(t, stack.Options{DualStack: true})
	four, six := "192.0.2.1", "2001:db8::1"
	for _, tt := range []struct{ name, first, second string }{{"IPv4 first", four, six}, {"IPv6 first", six, four}} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDaemon(t, on, "--node-ip", tt.first+","+tt.second)
			d.start()
			own, host := d.pod("own", addressReporter("own"), probedWeb()), d.pod("host", addressReporter("host"))
			host.Spec.HostNetwork = true
			d.apply(own, host)
			d.wantDualStack(own.Name, host.Name, tt.first, tt.second)
			d.remove("own", "host")
			d.untilGone("own", "host")
		})
	}
}

// wantDualStack checks the addresses of the pod own, which is on the pod network, and of the pod host,
// which is on the host's network. first and second are the addresses of the node.
func (d *daemon) wantDualStack(own, host, first, second string) {
	t := d.t
	t.Helper()
	s := d.untilApplied(own).Pod.Status
	subnets := []netip.Prefix{d.on.Reservation.Subnet, d.on.Reservation.Subnet6()}
	if strings.Contains(first, ":") {
		subnets[0], subnets[1] = subnets[1], subnets[0]
	}
	if len(s.PodIPs) != 2 || !inSubnet(s.PodIPs[0].IP, subnets[0]) || !inSubnet(s.PodIPs[1].IP, subnets[1]) || s.PodIP != s.PodIPs[0].IP {
		t.Fatalf("pod %s: got podIP %q and podIPs %+v, want one address in each of the subnets %s, in this order", own, s.PodIP, s.PodIPs, subnets)
	}
	wantHost := fmt.Sprintf("%s %s,%s", first, first, second)
	if got := joinHostIPs(s); got != wantHost {
		t.Errorf("pod %s: got hostIP and hostIPs %s, want %s", own, got, wantHost)
	}
	one, two := s.PodIPs[0].IP, s.PodIPs[1].IP
	if got, want := d.readTrace("own-vars"), fmt.Sprintf("%s %s,%s %s", one, one, two, wantHost); got != want {
		t.Errorf("pod %s: got the variables %s, want %s", own, got, want)
	}
	if got, want := d.readTrace("own-hosts"), fmt.Sprintf("\n%s\t%[3]s\n%[2]s\t%[3]s", one, two, d.podName(own)); !strings.HasSuffix(got, want) {
		t.Errorf("pod %s: got the hosts file %q, want the suffix %q", own, got, want)
	}
	for _, ip := range []string{one, two} {
		reply, err := http.Get("http://" + net.JoinHostPort(ip, "8080"))
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if want := "hello from " + d.podName(own) + "\n"; string(text) != want || err != nil {
			t.Errorf("response at %s: got %q, error %v; want %q", ip, text, err, want)
		}
	}

	s = d.untilApplied(host).Pod.Status
	if len(s.PodIPs) != 2 || s.PodIP != first || s.PodIPs[0].IP != first || s.PodIPs[1].IP != second || joinHostIPs(s) != wantHost {
		t.Errorf("pod on the host's network: got podIP %q, podIPs %+v and host IPs %s, want podIPs %s and %s, and host IPs %s", s.PodIP, s.PodIPs, joinHostIPs(s), first, second, wantHost)
	}
	if got, want := d.readTrace("host-vars"), wantHost+" "+wantHost; got != want {
		t.Errorf("pod on the host's network: got the variables %s, want %s", got, want)
	}
}

// inSubnet reports whether subnet contains the address ip.
func inSubnet(ip string, subnet netip.Prefix) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && subnet.Contains(a)
}

// joinHostIPs returns hostIP and, separated by commas, hostIPs of a status.
func joinHostIPs(s v1.PodStatus) string {
	var all []string
	for _, ip := range s.HostIPs {
		all = append(all, ip.IP)
	}
	return s.HostIP + " " + strings.Join(all, ",")
}

// addressReporter returns a container that writes its addresses from the downward API and its
// hosts file to /trace.
func addressReporter(name string) v1.Container {
	c := shell("ask", writeTrace(name+"-vars", "echo $IP $IPS $HOST $HOSTS")+writeTrace(name+"-hosts", "cat /etc/hosts")+serve(name))
	for name, path := range map[string]string{"IP": "status.podIP", "IPS": "status.podIPs", "HOST": "status.hostIP", "HOSTS": "status.hostIPs"} {
		c.Env = append(c.Env, v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}})
	}
	return c
}

// probedWeb returns a container that becomes ready when it responds at the pod's address.
func probedWeb() v1.Container {
	return v1.Container{Name: "web", Image: stack.WebImage, ReadinessProbe: &v1.Probe{
		PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(8080)}},
	}}
}
