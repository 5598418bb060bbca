package config

import (
	"fmt"
	"testing"
)

// TestVisitFeatureGates checks the stages and the values of feature gates that podd cannot disable, does not
// have, can disable, and ignores.
func TestVisitFeatureGates(t *testing.T) {
	got, visited := map[string]string{}, 0
	set := map[string]bool{"PodsAPI": false, "WatchListClient": false, "HPAScaleToZero": false, "NodeSwap": true}
	VisitFeatureGates(set, func(name, stage string, isEnabled bool) {
		got[name] = fmt.Sprintf("%q %t", stage, isEnabled)
		visited++
	})
	for name, want := range map[string]string{
		"NodeSwap":                  `"" true`,
		"EventedPLEG":               `"ALPHA" true`,  // disabled by default in the kubelet
		"DynamicResourceAllocation": `"" false`,      // enabled by default in the kubelet
		"PodsAPI":                   `"BETA" false`,  // disabled by the user
		"SELinuxMount":              `"" true`,       // not set
		"WatchListClient":           `"BETA" false`,  // has no effect in podd
		"JobManagedBy":              `"" true`,       // has no effect in a kubelet
		"AllAlpha":                  `"ALPHA" false`, // not set
	} {
		if got[name] != want {
			t.Errorf("%s: got stage and value %s, want %s", name, got[name], want)
		}
	}
	if visited != len(gateNames) || len(got) != visited {
		t.Errorf("got %d visited gates and %d different ones, want %d", visited, len(got), len(gateNames))
	}
}
