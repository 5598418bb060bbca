//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// controlPlane are the pods of kubeadm, with the ports that their probes ask.
var controlPlane = map[string]int32{"etcd": 2381, "kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}

// nodeCritical is the value of class system-node-critical.
const nodeCritical = 2000001000

// slowly is patience with probes that ask every ten seconds.
var slowly = 5 * patience

// TestKubeadm: what kubeadm writes runs, is asked by all its probes, and is
// alive and ready as they say, also to a podd that was killed.
func TestKubeadm(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.writeControlPlane()
	d.start()
	v := d.untilWithin(slowly, "the control plane is ready", d.controlPlaneReady)
	for name := range controlPlane {
		checkComponent(t, d.find(v, name))
		d.untilProbed(d.find(v, name))
	}
	was := d.components()
	v = d.killControlPlanesPodd()
	d.failReadiness(d.find(v, "kube-apiserver"))
	d.wantComponents(was)
	d.failLiveness(d.find(v, "kube-apiserver"))
	now := d.components()
	if n := now["kube-apiserver"]; n.Attempt != 1 || n.Sandbox != was["kube-apiserver"].Sandbox {
		t.Errorf("kube-apiserver is now %+v, was %+v", n, was["kube-apiserver"])
	}
	was["kube-apiserver"] = now["kube-apiserver"]
	d.wantComponents(was)
}

// killControlPlanesPodd sees that nothing changes with podd, whatever it is
// asked meanwhile; a liveness probe is due in that time, too.
func (d *daemon) killControlPlanesPodd() *server.View {
	d.t.Helper()
	d.kill()
	d.launch()
	d.eventually("podd answers", func() error { _, err := d.state(); return err })
	d.stays(12, "the next podd asks", func(now *server.View) error {
		for name := range controlPlane {
			p := d.find(now, name)
			if p == nil || len(p.Pod.Status.ContainerStatuses) == 0 || p.Pod.Status.ContainerStatuses[0].State.Running == nil {
				continue // the runtime was not seen yet
			}
			if !p.Ready || restarts(p, name) != 0 {
				return fmt.Errorf("%s: ready %v, %d restarts", name, p.Ready, restarts(p, name))
			}
		}
		return nil
	})
	return d.until("the control plane is ready still", d.controlPlaneReady)
}

func (d *daemon) controlPlaneReady(v *server.View) error {
	for name := range controlPlane {
		if p := d.find(v, name); p == nil || !p.Ready || !p.Current {
			return fmt.Errorf("%s is not ready", name)
		}
	}
	return nil
}

// checkComponent looks at what does not change.
func checkComponent(t *testing.T, p *server.PodView) {
	t.Helper()
	spec, status, name := p.Pod.Spec, p.Pod.Status, p.Pod.Name
	if p.Pod.Namespace != "kube-system" || spec.PriorityClassName != "system-node-critical" || spec.Priority == nil || *spec.Priority != nodeCritical {
		t.Errorf("%s/%s has priority %v of class %q", p.Pod.Namespace, name, spec.Priority, spec.PriorityClassName)
	}
	if c := status.ContainerStatuses[0]; c.RestartCount != 0 || c.Started == nil || !*c.Started {
		t.Errorf("%s: %+v", name, c)
	}
	if status.HostIP == "" || status.PodIP != status.HostIP {
		t.Errorf("%s has address %q on host %q", name, status.PodIP, status.HostIP)
	}
}

func readySince(p *server.PodView) time.Time {
	for _, c := range p.Pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// components are what runs of the control plane.
func (d *daemon) components() map[string]running {
	d.t.Helper()
	all := map[string]running{}
	for name := range controlPlane {
		all[name] = d.runs(name, name)
	}
	return all
}

func (d *daemon) wantComponents(want map[string]running) {
	d.t.Helper()
	for name, now := range d.components() {
		if now != want[name] {
			d.t.Errorf("%s is now %+v, was %+v", name, now, want[name])
		}
	}
}
