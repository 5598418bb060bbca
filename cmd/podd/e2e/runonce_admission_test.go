//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/reconcile/node"
)

// exclusive returns a script that fails if a container with the same script runs at the same time.
func exclusive(name string) string {
	return "mkdir /trace/busy || exit 40; " + note(name) + "sleep 1; rmdir /trace/busy"
}

// requestingCPU returns a container that requests an amount of cpu.
func requestingCPU(c v1.Container, cpu string) v1.Container {
	c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	return c
}

// TestRunOnce_QueueMaxPods checks that pods run one after the other if --max-pods is less than the
// number of pods. For each pod that waits, podd must print the reason only once.
func TestRunOnce_QueueMaxPods(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	var pods []*v1.Pod
	for _, name := range []string{"a", "b", "c"} {
		pods = append(pods, d.jobPod(name, never, shell("c", exclusive(name))))
	}
	d.writePods("pods", pods...)
	r := d.run("--max-pods", "1", "pods.yaml")
	r.wantExit(0, "podd: 3 pods, 0 failed", "waits: the node is full: 1 of 1 pods")
	if n := strings.Count(r.err.String(), "waits: "); n != 2 {
		t.Errorf("stderr of the run: got %d messages about pods that wait, want 2:\n%s", n, r.err.String())
	}
	if n := len(d.notes()); n != 3 {
		t.Errorf("number of notes of the pods: got %d, want 3", n)
	}
}

// TestRunOnce_QueueHostPort checks that pods with the same host port run one after the other.
func TestRunOnce_QueueHostPort(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	var pods []*v1.Pod
	for _, name := range []string{"a", "b"} {
		p := d.jobPod(name, never, shell("c", exclusive(name)))
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8124}}
		pods = append(pods, p)
	}
	d.writePods("pods", pods...)
	d.run("pods.yaml").wantExit(0, "podd: 2 pods, 0 failed", "b: waits: host port 8124/TCP is used by ")
	if n := len(d.notes()); n != 2 {
		t.Errorf("number of notes of the pods: got %d, want 2", n)
	}
}

// TestRunOnce_QueueAllocatable checks that a pod waits until other pods of the run have released enough
// of the node's allocatable CPU. The pod must be able to wait for longer than 30 seconds. Only a pod
// that waits because of a problem of the node is given up after this time.
func TestRunOnce_QueueAllocatable(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.write("config", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+
		fmt.Sprintf("systemReserved: {cpu: %dm}\n", 1000*node.CountCPUs()-500))
	long := d.jobPod("a", never, requestingCPU(shell("c", "mkdir /trace/busy; "+note("a")+"sleep 33; rmdir /trace/busy"), "400m"))
	d.writePods("pods", d.jobPod("b", never, requestingCPU(shell("c", exclusive("b")), "300m")), long, d.jobPod("small", never, requestingCPU(shell("c", note("small")), "50m")))
	began := time.Now()
	r := d.run("--config", "config.yaml", "pods.yaml")
	r.wantExit(0, "podd: 3 pods, 0 failed", "b: waits: the pod requests 300m of cpu; the node has 500m for pods, of which other pods request ")
	if took := time.Since(began); took < 33*time.Second {
		t.Errorf("duration of the run: got %s, want at least 33s, because pods a and b run one after the other", took)
	}
	if got := d.notes(); len(got) != 3 || got[2] != "b" {
		t.Errorf("started pods: got %q, want three pods, with pod b as the last", got)
	}
}

// TestRunOnce_NeverFits checks the error for a pod that can never run on the node: it requests more CPU
// than the node has, or the pods with restartPolicy Always leave no room for it. No pod may start.
func TestRunOnce_NeverFits(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	db := d.jobPod("db", always, requestingCPU(shell("pg", note("db")+serve("db")), "1m"))
	d.writePods("big", db, d.jobPod("big", never, requestingCPU(shell("c", note("big")), "1000")))
	d.run("big.yaml").wantExit(125, "big.yaml:", "error: pod big cannot run on this node: the pod requests 1k of cpu; the node has ", "1 pod cannot run on this node; nothing was started")
	d.writePods("beside", db, d.jobPod("job", never, shell("c", note("job"))))
	d.run("--max-pods", "1", "beside.yaml").wantExit(125, "pod job cannot run on this node: the node is full: 1 of 1 pods", "nothing was started")
	if got := d.notes(); strings.Join(got, "") != "" {
		t.Errorf("started pods: got %q, want none", got)
	}
}

// TestRunOnce_QueueClaim checks that pods with a ReadWriteOncePod claim run one after the other.
func TestRunOnce_QueueClaim(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	use := func(name string) *v1.Pod {
		p := d.jobPod(name, never, shell("c", exclusive(name)))
		withVolume(p, "data", "/data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})
		return p
	}
	d.write("pods", manifestText(d, newClaim("data", v1.ReadWriteOncePod), use("a"), use("b")))
	d.run("pods.yaml").wantExit(0, "podd: 2 pods, 0 failed", "b: waits: claim data is ReadWriteOncePod and used by ")
	d.untilNoted("a", "b")
}
