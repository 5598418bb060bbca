package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/manifest"
)

// TestKubeadm decodes what kubeadm 1.34 writes. All there is to say of it are
// the probes, which podd does not serve yet.
func TestKubeadm(t *testing.T) {
	want := map[string][]string{
		"etcd":                    {"livenessProbe", "readinessProbe", "startupProbe"},
		"kube-apiserver":          {"livenessProbe", "readinessProbe", "startupProbe"},
		"kube-controller-manager": {"livenessProbe", "startupProbe"},
		"kube-scheduler":          {"livenessProbe", "readinessProbe", "startupProbe"},
	}
	for name, probes := range want {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(manifests, "kubeadm", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			f := manifest.Decode(data, manifest.Options{Path: name + ".yaml", Node: "cp-0"})
			var got []string
			for _, p := range f.Problems {
				field, ok := strings.CutPrefix(p.Field, "spec.containers[0].")
				if !ok || p.Severity != manifest.Error || !strings.Contains(p.Message, "not served by podd yet") {
					t.Errorf("unexpected problem: %s", p)
				}
				if p.Position.Line == 0 || p.Position.Column == 0 {
					t.Errorf("%s has no position", p)
				}
				if p.Pod.String() != "kube-system/"+name+"-cp-0" {
					t.Errorf("problem is about pod %s", p.Pod)
				}
				got = append(got, field)
			}
			if diff := cmp.Diff(probes, got); diff != "" {
				t.Errorf("unserved fields (-want +got):\n%s", diff)
			}
			if !f.Refused() || len(f.Pods) != 0 {
				t.Errorf("Refused() = %t with %d pods, want a refusal and none", f.Refused(), len(f.Pods))
			}
		})
	}
}

// TestKubeadmWithoutProbes: without their probes the pods run as they are.
func TestKubeadmWithoutProbes(t *testing.T) {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		data, err := os.ReadFile(filepath.Join(manifests, "kubeadm", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		f := manifest.Decode(withoutProbes(data), manifest.Options{Path: name, Node: "cp-0"})
		if len(f.Problems) > 0 || len(f.Pods) != 1 {
			t.Fatalf("%s: %d pods, problems %v", name, len(f.Pods), f.Problems)
		}
		spec := f.Pods[0].Spec.Spec
		if spec.Priority == nil || *spec.Priority != 2000001000 {
			t.Errorf("%s: priority is %v", name, spec.Priority)
		}
		if port := spec.Containers[0].Ports[0]; port.HostPort != port.ContainerPort {
			t.Errorf("%s: host port %d for container port %d on the host's network", name, port.HostPort, port.ContainerPort)
		}
	}
}

// withoutProbes drops the probes' lines of a manifest as kubeadm indents them.
func withoutProbes(data []byte) []byte {
	var kept []string
	probe := false
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "      ") && probe {
			continue
		}
		if probe = strings.HasSuffix(strings.TrimSpace(line), "Probe:"); !probe {
			kept = append(kept, line)
		}
	}
	return []byte(strings.Join(kept, ""))
}
