package host

import (
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/render"
)

// TestAdmissionLimits_MaxPods checks that podsPerCore lowers the maximum number of pods, but does not
// raise it, and that the limits name the flags that determine the number.
func TestAdmissionLimits_MaxPods(t *testing.T) {
	for name, tt := range map[string]struct {
		maxPods, perCore, want int
		flags                  string
	}{
		"without podsPerCore":       {110, 0, 110, "--max-pods"},
		"podsPerCore is lower":      {110, 5, 20, "--pods-per-core"},
		"podsPerCore is higher":     {10, 5, 10, "--max-pods"},
		"podsPerCore is equal":      {20, 5, 20, "--max-pods and --pods-per-core"},
		"podsPerCore is very large": {110, 1<<31 - 1, 110, "--max-pods"},
		"no pods":                   {0, 5, 0, "--max-pods"},
	} {
		cfg := config.Config{Node: config.Node{MaxPods: tt.maxPods, PodsPerCore: tt.perCore}}
		node := render.Resources{MilliCPU: 4000, Memory: 8 << 30}
		if got := AdmissionLimits(&cfg, node, node); got.MaxPods != tt.want || got.NoPods != (tt.want == 0) || got.MaxPodsFlags != tt.flags {
			t.Errorf("%s: got %d pods (none: %t) because of %q, want %d because of %q", name, got.MaxPods, got.NoPods, got.MaxPodsFlags, tt.want, tt.flags)
		}
	}
}
