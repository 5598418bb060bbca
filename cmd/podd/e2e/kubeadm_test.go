//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// controlPlane contains kubeadm's static pods and the ports of their probes.
var controlPlane = map[string]int32{"etcd": 2381, "kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}

// nodeCritical is the priority of the class system-node-critical.
const nodeCritical = 2000001000

// probePatience is the maximum wait for probes with a period of ten seconds.
var probePatience = 5 * patience

// TestKubeadm runs the static pods in the manifests of kubeadm, with the program of package component
// instead of the programs of the control plane. podd must execute all their probes, and must derive
// readiness and restarts from the results, also after podd was killed.
func TestKubeadm(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.writeControlPlane()
	d.start()
	v := d.untilWithin(probePatience, "the control plane is ready", d.controlPlaneReady)
	for name := range controlPlane {
		checkComponent(t, d.find(v, name))
		d.untilProbed(d.find(v, name))
	}
	was := d.components()
	v = d.restartKilled()
	d.failReadiness(d.find(v, "kube-apiserver"))
	d.wantComponents(was)
	d.failLiveness(d.find(v, "kube-apiserver"))
	now := d.components()
	if n := now["kube-apiserver"]; n.Attempt != 1 || n.Sandbox != was["kube-apiserver"].Sandbox {
		t.Errorf("container of kube-apiserver after failed liveness probes: got %+v, want attempt 1 in the sandbox of %+v", n, was["kube-apiserver"])
	}
	was["kube-apiserver"] = now["kube-apiserver"]
	d.wantComponents(was)
}

// restartKilled kills and restarts podd. It checks for longer than the period of the liveness
// probes that the control plane stays ready and is not restarted.
func (d *daemon) restartKilled() *server.View {
	d.t.Helper()
	d.kill()
	d.launch()
	d.eventually("podd responds", func() error { _, err := d.state(); return err })
	d.consistently(12, "the control plane stays ready after the restart of podd", func(now *server.View) error {
		for name := range controlPlane {
			p := d.find(now, name)
			if p == nil || len(p.Pod.Status.ContainerStatuses) == 0 || p.Pod.Status.ContainerStatuses[0].State.Running == nil {
				continue // podd has not listed the containers yet
			}
			if !p.Ready || restarts(p, name) != 0 {
				return fmt.Errorf("%s: got ready %t, restarts %d; want ready true, restarts 0", name, p.Ready, restarts(p, name))
			}
		}
		return nil
	})
	return d.until("the control plane is still ready", d.controlPlaneReady)
}

// controlPlaneReady returns an error unless all pods of the control plane are ready in their
// current version.
func (d *daemon) controlPlaneReady(v *server.View) error {
	for name := range controlPlane {
		if p := d.find(v, name); p == nil || !p.Ready || !p.IsCurrent {
			return fmt.Errorf("pod %s: got %+v, want it ready in the current version", name, p)
		}
	}
	return nil
}

// checkComponent checks that the pod of a component has the namespace and priority of its manifest and
// the address of the host, and that its container was started without a restart.
func checkComponent(t *testing.T, p *server.PodView) {
	t.Helper()
	spec, status, name := p.Pod.Spec, p.Pod.Status, p.Pod.Name
	if p.Pod.Namespace != "kube-system" || spec.PriorityClassName != "system-node-critical" || spec.Priority == nil || *spec.Priority != nodeCritical {
		t.Errorf("got namespace %s of pod %s, priority %v, class %q; want namespace kube-system, priority %d, class system-node-critical", p.Pod.Namespace, name, spec.Priority, spec.PriorityClassName, nodeCritical)
	}
	if c := status.ContainerStatuses[0]; c.RestartCount != 0 || c.Started == nil || !*c.Started {
		t.Errorf("%s: got %+v, want a started container without restarts", name, c)
	}
	if status.HostIP == "" || status.PodIP != status.HostIP {
		t.Errorf("%s: got pod address %q, want that of the host, %q", name, status.PodIP, status.HostIP)
	}
}

// readySince returns the time of the last change of the condition Ready, or the zero time.
func readySince(p *server.PodView) time.Time {
	for _, c := range p.Pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// components returns the running containers of the control plane.
func (d *daemon) components() map[string]runningContainer {
	d.t.Helper()
	all := map[string]runningContainer{}
	for name := range controlPlane {
		all[name] = d.container(name, name)
	}
	return all
}

// wantComponents fails the test unless the running containers of the control plane are those in
// want.
func (d *daemon) wantComponents(want map[string]runningContainer) {
	d.t.Helper()
	for name, now := range d.components() {
		if now != want[name] {
			d.t.Errorf("running container of %s: got %+v, want %+v", name, now, want[name])
		}
	}
}
