package runtime

import "testing"

func TestSandbox_HostIDs(t *testing.T) {
	for _, tt := range []struct {
		first, count string
		want         IDRange
	}{
		{"", "", IDRange{}},
		{"65536", "", IDRange{65536, 65536}},
		{"196608", "131072", IDRange{196608, 131072}},
		{"4294836224", "65536", IDRange{4294836224, 65536}},
		{"4294901760", "65536", IDRange{}}, // includes the ID 4294967295, which means "no user"
		{"0", "", IDRange{}},
		{"1000", "", IDRange{}},
		{"65536", "1000", IDRange{}},
		{"65536", "0", IDRange{}},
		{"65536", "-65536", IDRange{}},
		{"65536", "4294967296", IDRange{}},
		{"x", "65536", IDRange{}},
		{"", "65536", IDRange{}},
	} {
		s := Sandbox{Annotations: map[string]string{}}
		if tt.first != "" {
			s.Annotations[AnnotationFirstHostUID] = tt.first
		}
		if tt.count != "" {
			s.Annotations[AnnotationHostIDCount] = tt.count
		}
		if got := s.HostIDs(); got != tt.want {
			t.Errorf("first %q, count %q: got range %v, want %v", tt.first, tt.count, got, tt.want)
		}
		s.Foreign = true
		if got := s.HostIDs(); got != (IDRange{}) {
			t.Errorf("foreign sandbox, first %q, count %q: got %v, want none", tt.first, tt.count, got)
		}
	}
}
