package decode_test

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/decode"
)

// TestFile_Kubeadm checks that the manifests of kubeadm 1.34 have no Problem.
func TestFile_Kubeadm(t *testing.T) {
	probes := map[string]int{"etcd": 3, "kube-apiserver": 3, "kube-controller-manager": 2, "kube-scheduler": 3}
	for name, want := range probes {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(manifests, "kubeadm", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			f := decode.File(data, decode.Options{Path: name + ".yaml", NodeName: "cp-0"})
			if len(f.Problems) > 0 || len(f.Pods) != 1 {
				t.Fatalf("got %d pods and problems %v, want one pod without problems", len(f.Pods), f.Problems)
			}
			spec := f.Pods[0].Object.Spec
			if spec.Priority == nil || *spec.Priority != 2000001000 {
				t.Errorf("priority: got %v, want system-node-critical", spec.Priority)
			}
			c := &spec.Containers[0]
			if port := c.Ports[0]; port.HostPort != port.ContainerPort {
				t.Errorf("host network: got host port %d, want the container port %d", port.HostPort, port.ContainerPort)
			}
			got := 0
			for _, p := range []*v1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if p != nil && p.HTTPGet != nil && p.HTTPGet.Host != "" && p.SuccessThreshold == 1 {
					got++
				}
			}
			if got != want {
				t.Errorf("got %d probes with defaults, want %d", got, want)
			}
		})
	}
}
