package plugins

import (
	"strings"
	"testing"

	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// TestPluginInfo checks the limits of a plugin's description, and that the endpoint is the
// plugin's socket unless the description contains an endpoint.
func TestPluginInfo(t *testing.T) {
	const socket = "/root/plugins_registry/a.sock"
	for _, c := range []struct {
		info     *v1.PluginInfo
		endpoint string
		want     string // "" or part of the error
	}{
		{info: &v1.PluginInfo{Name: "a"}, endpoint: socket},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "/run/../run/a.sock"}, endpoint: "/run/a.sock"},
		{info: &v1.PluginInfo{}, want: "the name of the plugin has 0 characters"},
		{info: &v1.PluginInfo{Name: strings.Repeat("a", 254)}, want: "the name of the plugin has 254 characters"},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "a.sock"}, want: "not an absolute path"},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "/a\x00b"}, want: "not an absolute path"},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "/" + strings.Repeat("a", 5000)}, want: "not an absolute path"},
		{info: &v1.PluginInfo{Name: "a", SupportedVersions: make([]string, 17)}, want: "the plugin reports 17 versions (limit 16)"},
	} {
		p, err := newPlugin(c.info, socket)
		switch {
		case c.want == "" && (err != nil || p.Endpoint != c.endpoint):
			t.Errorf("%+v: got plugin %+v (error %v), want endpoint %q", c.info, p, err, c.endpoint)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: got error %v, want one with %q", c.info, err, c.want)
		}
	}
}

// TestBounded checks that the text of a plugin is truncated to valid UTF-8.
func TestBounded(t *testing.T) {
	if got := TruncateText(strings.Repeat("ä", 1000) + "\xff"); len(got) > maxTextLength+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("got %d bytes: %q; want at most maxTextLength bytes and \"…\" at the end", len(got), got)
	}
}
