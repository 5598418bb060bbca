package decode

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
		{fields, "restartpolicies", `; did you mean "restartPolicy"?`},
		{fields, "restartrules", "; remove it"},
		{fields, "", "; remove it"},
		{nil, "a", "; remove it"},
	}
	for _, tt := range tests {
		if got := suggest(tt.key, tt.fields); got != tt.want {
			t.Errorf("suggest(%q) = %q, want %q", tt.key, got, tt.want)
		}
	}
}
