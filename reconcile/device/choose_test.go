package device

import (
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	tests := map[string]struct {
		reusable, free, preferred string
		n                         int
		want                      string // "" if there are not enough free devices
	}{
		"in the order of IDs":           {"", "c a b", "", 2, "a b"},
		"preferred":                     {"", "a b c", "c", 2, "a c"},
		"more preferred than requested": {"", "a b c", "c b", 1, "b"},
		"preferred, but not available":  {"", "a b", "x b", 2, "a b"},
		"reusable before free":          {"z", "a b", "", 2, "a z"},
		"reusable before preferred":     {"y z", "a", "a", 1, "y"},
		"more reusable than requested":  {"x y z", "a", "", 2, "x y"},
		"all devices":                   {"x", "a", "", 2, "a x"},
		"one too few":                   {"x", "a", "", 3, ""},
		"no devices":                    {"", "", "", 1, ""},
		"preferred twice":               {"", "a b", "b b", 2, "a b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := availableDevices{reusableIDs: strings.Fields(tt.reusable), freeIDs: strings.Fields(tt.free)}
			got, err := o.choose(tt.n, strings.Fields(tt.preferred))
			if (err != nil) != (tt.want == "") || !slices.Equal(got, strings.Fields(tt.want)) {
				t.Errorf("got devices %q (error %v), want %q (\"\": an error)", got, err, tt.want)
			}
		})
	}
}
