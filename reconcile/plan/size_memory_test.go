package plan

import "testing"

// TestCheckMemory checks which decreases of memory limits are refused.
func TestCheckMemory(t *testing.T) {
	const mi = 1 << 20
	for name, tt := range map[string]struct {
		limits []MemoryLimitChange
		want   string
	}{
		"limit unchanged":                      {[]MemoryLimitChange{{"", 64 * mi, 64 * mi, 80 * mi}}, ""},
		"a limit grows":                        {[]MemoryLimitChange{{"a", 16 * mi, 32 * mi, 40 * mi}}, ""},
		"a limit is removed":                   {[]MemoryLimitChange{{"a", 16 * mi, 0, 40 * mi}}, ""},
		"usage below the new limit":            {[]MemoryLimitChange{{"a", 64 * mi, 32 * mi, 32*mi - 1}}, ""},
		"usage equals the new limit":           {[]MemoryLimitChange{{"a", 64 * mi, 32 * mi, 32 * mi}}, `cannot decrease memory limits: attempting to set container "a" memory limit (33554432) below current usage (33554432)`},
		"a limit is added":                     {[]MemoryLimitChange{{"a", 0, 32 * mi, 33 * mi}}, `cannot decrease memory limits: attempting to set container "a" memory limit (33554432) below current usage (34603008)`},
		"usage of the pod above the new limit": {[]MemoryLimitChange{{"", 64 * mi, 32 * mi, 33 * mi}, {"a", 64 * mi, 32 * mi, mi}}, "cannot decrease memory limits: attempting to set pod memory limit (33554432) below current usage (34603008)"},
		"usage of pod and container above the new limits": {[]MemoryLimitChange{{"", 64 * mi, 32 * mi, 40 * mi}, {"a", 64 * mi, 32 * mi, 40 * mi}},
			`cannot decrease memory limits: [attempting to set pod memory limit (33554432) below current usage (41943040), attempting to set container "a" memory limit (33554432) below current usage (41943040)]`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := CheckMemory(tt.limits); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
