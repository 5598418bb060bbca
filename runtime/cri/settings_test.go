package cri

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/runtime"
)

// TestParseSettings parses excerpts of the verbose status of each runtime.
func TestParseSettings(t *testing.T) {
	const cni = `{"PluginDirs":["/opt/cni/bin"],"PluginConfDir":"/etc/cni/net.d","Networks":[{"Config":{"Name":"net","Plugins":[{"Network":{"ipam":{"type":"host-local"},"type":"bridge"}},{"Network":{"ipam":{},"type":"portmap"}}]},"IFName":"eth0"}]}`
	want := runtime.Settings{CNIConfDir: "/etc/cni/net.d", CNIPluginDirs: []string{"/opt/cni/bin"}, CNIPlugins: []string{"bridge", "host-local", "portmap"}}
	named := want
	named.SandboxImage = "registry.k8s.io/pause:3.6"
	for name, c := range map[string]struct {
		info map[string]string
		want runtime.Settings
	}{
		"containerd 2":        {map[string]string{"config": `{"cni":{}}`, "cniconfig": cni}, want},
		"containerd 1.6":      {map[string]string{"config": `{"sandboxImage":"registry.k8s.io/pause:3.6"}`, "cniconfig": cni}, named},
		"CRI-O":               {map[string]string{"config": `{"crio":{},"sandboxImage":"registry.k8s.io/pause:3.6"}`}, runtime.Settings{SandboxImage: "registry.k8s.io/pause:3.6"}},
		"other runtime":       {nil, runtime.Settings{}},
		"other formats":       {map[string]string{"config": "[]", "cniconfig": "{"}, runtime.Settings{}},
		"terminal characters": {map[string]string{"config": `{"sandboxImage":"a\u001bb"}`}, runtime.Settings{SandboxImage: "a b"}},
	} {
		if diff := cmp.Diff(c.want, parseSettings(c.info)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
