package schema

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestUnknownField(t *testing.T) {
	pod := New[v1.Pod]()
	spec := pod.Field("spec")
	container := spec.Field("containers").element
	tests := []struct {
		schema *Schema
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
		{container, "hostNetwork", `; did you mean "spec.hostNetwork"?`},
		{container, "annotations", `; did you mean "metadata.annotations"?`},
		{container, "type", "; remove it"}, // several fields have this name
		{spec, "hostnetwork", `; did you mean "hostNetwork"?`},
		{spec, "container", `; did you mean "containers"?`},
		{spec, "restartpolicies", `; did you mean "restartPolicy"?`},
		{spec, "restartrules", "; remove it"},
		{spec, "kind", `; did you mean "kind" at the top level?`},
		{spec, "", "; remove it"},
		{&Schema{kind: object}, "a", "; remove it"},
	}
	for _, tt := range tests {
		c := &checker{root: pod}
		if got := c.unknownField(tt.schema, tt.key); got != "unknown field"+tt.want {
			t.Errorf("unknownField(%q): got %q, want %q", tt.key, got, "unknown field"+tt.want)
		}
	}
}
