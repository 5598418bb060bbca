package wording

import "testing"

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "a", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abd", 1}, {"abc", "bc", 1}, {"abc", "xabc", 1},
		{"kitten", "sitting", 3}, {"abc", "xyz", 3}, {"abcdef", "uvwxyz", 4}, {"a", "abcdefgh", 4},
	}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b, 4); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a, 4); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
