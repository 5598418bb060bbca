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

// untilProbed waits until each probe of a component has been answered well.
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
		d.untilAnswered(p, path+" 200 kube-probe/", n)
	}
}

// untilAnswered waits for as many answers as answered counts.
func (d *daemon) untilAnswered(p *server.PodView, answer string, n int) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("%s answers %s %d times", p.Pod.Name, answer, n), func() error {
		if got := d.answered(p, answer); got < n {
			return fmt.Errorf("it did %d times", got)
		}
		return nil
	})
}

// answered counts the answers in the log of a pod's first container, to the
// first process of it.
func (d *daemon) answered(p *server.PodView, answer string) int {
	d.t.Helper()
	dir := strings.Join([]string{p.Pod.Namespace, p.Pod.Name, string(p.Pod.UID)}, "_")
	text, err := os.ReadFile(filepath.Join(d.logs(), dir, p.Pod.Spec.Containers[0].Name, "0.log"))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.Count(string(text), "GET "+answer)
}

// failReadiness fails as often as is let pass, and then for good until healed.
func (d *daemon) failReadiness(p *server.PodView) {
	d.t.Helper()
	name, threshold := p.Pod.Spec.Containers[0].Name, int(p.Pod.Spec.Containers[0].ReadinessProbe.FailureThreshold)
	d.fault("readyz", threshold-1)
	d.untilAnswered(p, "/readyz 500", threshold-1)
	d.untilAnswered(p, "/readyz 200", d.answered(p, "/readyz 200")+1)
	d.untilPod("was ready all the time", name, func(now *server.PodView) error {
		if !now.Ready || !readySince(now).Equal(readySince(p)) {
			return fmt.Errorf("ready %v since %s, before since %s", now.Ready, readySince(now), readySince(p))
		}
		return nil
	})
	d.fault("readyz", 1<<30)
	now := d.untilPod("is not ready", name, readiness(false))
	d.untilAnswered(p, "/readyz 500", 2*threshold-1)
	if why := now.Steps[0].Why; !strings.Contains(why, "readiness probe failed: HTTP probe failed with statuscode: 500") {
		d.t.Errorf("podd says %q", why)
	}
	d.fault("readyz", 0)
	d.untilPod("is ready again", name, readiness(true))
}

// failLiveness fails exactly as often as ends a container.
func (d *daemon) failLiveness(p *server.PodView) {
	d.t.Helper()
	name, threshold := p.Pod.Spec.Containers[0].Name, int(p.Pod.Spec.Containers[0].LivenessProbe.FailureThreshold)
	d.fault("livez", threshold)
	d.untilWithin(slowly, name+" was started again", func(v *server.View) error {
		if now := d.find(v, name); now == nil || restarts(now, name) != 1 {
			return fmt.Errorf("it was not")
		}
		return nil
	})
	// The runtime writes a log a little behind.
	d.untilAnswered(p, "/livez 500", threshold)
	if bad := d.answered(p, "/livez 500"); bad != threshold {
		d.t.Errorf("%s was ended after %d errors, want %d", name, bad, threshold)
	}
	d.fault("livez", 0) // it would not start with that
	d.untilWithin(slowly, "the control plane is ready again", d.controlPlaneReady)
}
