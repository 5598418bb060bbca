package host

import (
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/render"
)

// TestAdmissionLimits_MaxPods checks that podsPerCore lowers the maximum number of pods, but does not
// raise it.
func TestAdmissionLimits_MaxPods(t *testing.T) {
	for name, tt := range map[string]struct{ maxPods, perCore, want int }{
		"without podsPerCore":       {110, 0, 110},
		"podsPerCore is lower":      {110, 5, 20},
		"podsPerCore is higher":     {10, 5, 10},
		"podsPerCore is very large": {110, 1<<31 - 1, 110},
	} {
		cfg := config.Config{Node: config.Node{MaxPods: tt.maxPods, PodsPerCore: tt.perCore}}
		node := render.Resources{MilliCPU: 4000, Memory: 8 << 30}
		if got := AdmissionLimits(&cfg, node, node).MaxPods; got != tt.want {
			t.Errorf("%s: got %d pods, want %d", name, got, tt.want)
		}
	}
}
