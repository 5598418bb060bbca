package manifest

import "testing"

func TestSuggest(t *testing.T) {
	fields := podShape().fields["spec"].fields
	container := fields["containers"].elem.fields
	tests := []struct {
		fields map[string]*shape
		key    string
		want   string
	}{
		{container, "imagee", `; did you mean "image"?`},
		{container, "Image", `; did you mean "image"?`},
		{container, "cmd", "; remove it"},
		{container, "comand", `; did you mean "command"?`},
		{container, "arg", `; did you mean "args"?`},
		{container, "volumeMount", `; did you mean "volumeMounts"?`},
		{container, "livenesProbe", `; did you mean "livenessProbe"?`},
		{container, "securitycontext", `; did you mean "securityContext"?`},
		{fields, "hostnetwork", `; did you mean "hostNetwork"?`},
		{fields, "container", `; did you mean "containers"?`},
		{fields, "restartpolicies", "; remove it"},
		{fields, "", "; remove it"},
		{nil, "a", "; remove it"},
	}
	for _, tt := range tests {
		if got := suggest(tt.key, tt.fields); got != tt.want {
			t.Errorf("suggest(%q) = %q, want %q", tt.key, got, tt.want)
		}
	}
}

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
