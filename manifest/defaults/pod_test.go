package defaults

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestDefaults compares the defaults with those that Kubernetes sets in the same pod.
// Kubernetes wrote the golden file, so it is not updated.
func TestDefaults(t *testing.T) {
	const dir = "../../testdata/manifests/defaults/"
	pod := readPod(t, dir+"all.yaml")
	want := readPod(t, dir+"all.yaml.golden")
	Pod(pod)
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("defaults (-kubernetes +podd):\n%s", diff)
	}
	again := pod.DeepCopy()
	Pod(again)
	if diff := cmp.Diff(pod, again); diff != "" {
		t.Errorf("setting the defaults again (-first +second):\n%s", diff)
	}
}

func readPod(t *testing.T, path string) *v1.Pod {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestPullPolicy(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	tests := map[string]v1.PullPolicy{
		"app":                              v1.PullAlways,
		"app:latest":                       v1.PullAlways,
		"app:1":                            v1.PullIfNotPresent,
		"registry.example:5000/app":        v1.PullAlways,
		"registry.example:5000/app:1":      v1.PullIfNotPresent,
		"registry.example:5000/app:latest": v1.PullAlways,
		"app" + digest:                     v1.PullIfNotPresent,
		"app:1" + digest:                   v1.PullIfNotPresent,
		"app:latest" + digest:              v1.PullAlways,
		digest[len("@sha256:"):]:           v1.PullIfNotPresent,
		"":                                 v1.PullIfNotPresent,
	}
	for image, want := range tests {
		if got := defaultPullPolicy(image); got != want {
			t.Errorf("pullPolicy(%q): got %s, want %s", image, got, want)
		}
	}
}
