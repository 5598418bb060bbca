package effect

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestInput_PullSecrets_Missing checks that the error of a failed pull names the place of the
// missing Secret, also for a pod without a source.
func TestInput_PullSecrets_Missing(t *testing.T) {
	for source, want := range map[string]string{"/manifests": "is not defined in /manifests", "": "is not defined in any of the files"} {
		p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{ImagePullSecrets: []v1.LocalObjectReference{{Name: "reg"}}}}}
		p.Origin.Source = source
		if _, missing := (Input{}).pullSecrets(p); !strings.HasSuffix(missing, want) {
			t.Errorf("source %q: got %q, want it to end in %q", source, missing, want)
		}
	}
}
