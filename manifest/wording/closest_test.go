package wording

import "testing"

func TestClosest(t *testing.T) {
	names := []string{"args", "image", "hostNetwork", "ps", "logs", "restartPolicy", "ab", "ac"}
	for _, tt := range []struct{ word, want string }{
		{"imagee", "image"},
		{"IMAGE", "image"},
		{"restartpolicies", "restartPolicy"},
		{"hostnetwrok", "hostNetwork"},
		{"lgos", "logs"},
		{"pss", "ps"},
		{"arg", "args"},
		{"ad", "ab"}, // two candidates are equally similar; the first is returned
		{"cmd", ""},
		{"network", ""},
		{"", ""},
	} {
		if got := FindClosest(tt.word, names); got != tt.want {
			t.Errorf("Closest(%q): got %q, want %q", tt.word, got, tt.want)
		}
	}
	if got := FindClosest("a", nil); got != "" {
		t.Errorf("Closest without candidates: got %q, want none", got)
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "a", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abd", 1}, {"abc", "bc", 1}, {"abc", "xabc", 1},
		{"kitten", "sitting", 3}, {"abc", "xyz", 3}, {"abcdef", "uvwxyz", 4}, {"a", "abcdefgh", 4},
		{"abcd", "acbd", 1}, {"abcd", "badc", 2}, {"ca", "abc", 3},
	}
	for _, tt := range tests {
		if got := editDistance(tt.a, tt.b, 4); got != tt.want {
			t.Errorf("distance(%q, %q): got %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := editDistance(tt.b, tt.a, 4); got != tt.want {
			t.Errorf("distance(%q, %q): got %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
