//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// untilProbed waits until each probe of a component has had a successful response.
func (d *daemon) untilProbed(p *server.PodView) {
	d.t.Helper()
	c := p.Pod.Spec.Containers[0]
	want := map[string]int{}
	for _, probe := range []*v1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe != nil {
			want[probe.HTTPGet.Path]++
		}
	}
	for path, n := range want {
		d.untilResponses(p, path+" 200 kube-probe/", n)
	}
}

// untilResponses waits until the component in pod p has logged the response at least n times.
func (d *daemon) untilResponses(p *server.PodView, response string, n int) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("%s has responded %s %d times", p.Pod.Name, response, n), func() error {
		if got := d.countResponses(p, response); got < n {
			return fmt.Errorf("got %d responses, want at least %d", got, n)
		}
		return nil
	})
}

// countResponses counts the occurrences of response in the log of the first attempt of a pod's
// first container.
func (d *daemon) countResponses(p *server.PodView, response string) int {
	d.t.Helper()
	dir := strings.Join([]string{p.Pod.Namespace, p.Pod.Name, string(p.Pod.UID)}, "_")
	text, err := os.ReadFile(filepath.Join(d.logDir(), dir, p.Pod.Spec.Containers[0].Name, "0.log"))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.Count(string(text), "GET "+response)
}

// failReadiness first makes readiness probes fail once less than the failure threshold, and checks that
// the pod stays ready. Then it makes all readiness probes fail until the pod is not ready. At the end,
// the probes succeed again and the pod is ready.
func (d *daemon) failReadiness(p *server.PodView) {
	d.t.Helper()
	name, threshold := p.Pod.Spec.Containers[0].Name, int(p.Pod.Spec.Containers[0].ReadinessProbe.FailureThreshold)
	d.failHealthChecks("readyz", threshold-1)
	d.untilResponses(p, "/readyz 500", threshold-1)
	d.untilResponses(p, "/readyz 200", d.countResponses(p, "/readyz 200")+1)
	d.untilPod("has stayed ready", name, func(now *server.PodView) error {
		if !now.Ready || !readySince(now).Equal(readySince(p)) {
			return fmt.Errorf("got ready %t since %s, want ready true since %s", now.Ready, readySince(now), readySince(p))
		}
		return nil
	})
	d.failHealthChecks("readyz", 1<<30)
	now := d.untilPod("is not ready", name, hasReadiness(false))
	d.untilResponses(p, "/readyz 500", 2*threshold-1)
	if why, want := now.Decisions[0].Why, "readiness probe failed: HTTP probe failed with statuscode: 500"; !strings.Contains(why, want) {
		d.t.Errorf("reason why the pod is not ready: got %q, want %q in it", why, want)
	}
	d.failHealthChecks("readyz", 0)
	d.untilPod("is ready again", name, hasReadiness(true))
}

// failLiveness makes as many liveness probes fail as the failure threshold. It checks that podd restarts
// the container after the last of these failures and not earlier.
func (d *daemon) failLiveness(p *server.PodView) {
	d.t.Helper()
	name, threshold := p.Pod.Spec.Containers[0].Name, int(p.Pod.Spec.Containers[0].LivenessProbe.FailureThreshold)
	d.failHealthChecks("livez", threshold)
	d.untilWithin(probePatience, name+" is restarted", func(v *server.View) error {
		if now := d.find(v, name); now == nil || restarts(now, name) != 1 {
			return fmt.Errorf("got pod %+v, want 1 restart of container %s", now, name)
		}
		return nil
	})
	// The runtime writes the log with a delay.
	d.untilResponses(p, "/livez 500", threshold)
	if bad := d.countResponses(p, "/livez 500"); bad != threshold {
		d.t.Errorf("failed liveness probes before the restart of %s: got %d, want %d", name, bad, threshold)
	}
	d.failHealthChecks("livez", 0) // otherwise the container would not become ready
	d.untilWithin(probePatience, "the control plane is ready again", d.controlPlaneReady)
}
