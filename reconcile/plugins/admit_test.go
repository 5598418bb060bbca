package plugins

import (
	"strings"
	"testing"

	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// TestIntroduced: what a plugin says of itself is bounded, and its own socket is
// where it serves unless it names another.
func TestIntroduced(t *testing.T) {
	const socket = "/root/plugins_registry/a.sock"
	for _, c := range []struct {
		info     *v1.PluginInfo
		endpoint string
		says     string
	}{
		{info: &v1.PluginInfo{Name: "a"}, endpoint: socket},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "/run/../run/a.sock"}, endpoint: "/run/a.sock"},
		{info: &v1.PluginInfo{}, says: "its name has 0 characters"},
		{info: &v1.PluginInfo{Name: strings.Repeat("a", 254)}, says: "its name has 254 characters"},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "a.sock"}, says: "not an absolute path"},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "/a\x00b"}, says: "not an absolute path"},
		{info: &v1.PluginInfo{Name: "a", Endpoint: "/" + strings.Repeat("a", 5000)}, says: "not an absolute path"},
		{info: &v1.PluginInfo{Name: "a", SupportedVersions: make([]string, 17)}, says: "it speaks 17 versions"},
	} {
		p, err := introduced(c.info, socket)
		switch {
		case c.says == "" && (err != nil || p.Endpoint != c.endpoint):
			t.Errorf("%+v: %+v, %v", c.info, p, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%+v: %v, want %q", c.info, err, c.says)
		}
	}
}

// TestBounded: of a plugin's words no more is shown than is fit to be.
func TestBounded(t *testing.T) {
	if got := Bounded(strings.Repeat("ä", 1000) + "\xff"); len(got) > textLimit+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes", len(got))
	}
}
