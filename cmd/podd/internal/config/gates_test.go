package config

import "testing"

// TestAlwaysEnabled checks that the feature gates that podd cannot disable still exist in the kubelet.
func TestAlwaysEnabled(t *testing.T) {
	for name := range isAlwaysEnabled {
		if !isFeatureGate[name] {
			t.Errorf("%s is not a feature gate of the kubelet", name)
		}
	}
}
