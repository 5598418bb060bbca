package manifest

import (
	"os"
	"strings"
	"testing"
)

// TestKubernetesVersion checks that the modules of podd and of the programs with which tests
// compare it have KubernetesVersion.
func TestKubernetesVersion(t *testing.T) {
	staging := "v0." + strings.TrimPrefix(KubernetesVersion, "v1.")
	for path, modules := range map[string][]string{
		"../go.mod":                       {"k8s.io/api " + staging, "k8s.io/kubelet " + staging, "k8s.io/cri-api " + staging},
		"../testdata/controlplane/go.mod": {"k8s.io/kubernetes " + KubernetesVersion, "k8s.io/api => k8s.io/api " + staging},
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modules {
			if !strings.Contains(string(text), "\t"+m+"\n") {
				t.Errorf("%s does not contain %q", path, m)
			}
		}
	}
	if got := KubernetesRelease(); !strings.HasPrefix(KubernetesVersion, "v"+got+".") || strings.Count(got, ".") != 1 {
		t.Errorf("KubernetesRelease: got %q, want the major and minor version of KubernetesVersion", got)
	}
}
