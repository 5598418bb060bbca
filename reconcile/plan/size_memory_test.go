package plan

import "testing"

func TestCheckMemory(t *testing.T) {
	const mi = 1 << 20
	for name, tt := range map[string]struct {
		limits []MemoryLimit
		want   string
	}{
		"nothing changes":       {[]MemoryLimit{{"", 64 * mi, 64 * mi, 80 * mi}}, ""},
		"a limit grows":         {[]MemoryLimit{{"a", 16 * mi, 32 * mi, 40 * mi}}, ""},
		"a limit is removed":    {[]MemoryLimit{{"a", 16 * mi, 0, 40 * mi}}, ""},
		"less is in use":        {[]MemoryLimit{{"a", 64 * mi, 32 * mi, 32*mi - 1}}, ""},
		"as much is in use":     {[]MemoryLimit{{"a", 64 * mi, 32 * mi, 32 * mi}}, `cannot decrease memory limits: attempting to set container "a" memory limit (33554432) below current usage (33554432)`},
		"a limit is added":      {[]MemoryLimit{{"a", 0, 32 * mi, 33 * mi}}, `cannot decrease memory limits: attempting to set container "a" memory limit (33554432) below current usage (34603008)`},
		"the pod uses too much": {[]MemoryLimit{{"", 64 * mi, 32 * mi, 33 * mi}, {"a", 64 * mi, 32 * mi, mi}}, "cannot decrease memory limits: attempting to set pod memory limit (33554432) below current usage (34603008)"},
		"both": {[]MemoryLimit{{"", 64 * mi, 32 * mi, 40 * mi}, {"a", 64 * mi, 32 * mi, 40 * mi}},
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
