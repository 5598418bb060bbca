package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/manifest"
	"podd/manifest/decode"
)

// TestHostPortConflicts checks which pods cannot run at the same time because of their host ports,
// and the text and position of the Problems.
func TestHostPortConflicts(t *testing.T) {
	pod := func(name, spec string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  %s\n", name, spec)
	}
	ports := func(ports string) string {
		return "containers: [{name: main, image: i, ports: [" + ports + "]}]"
	}
	never := "restartPolicy: Never\n  "
	tests := map[string]struct {
		text string
		want []string
	}{
		"different ports":     {pod("a", ports("{containerPort: 80, hostPort: 80}")) + pod("b", ports("{containerPort: 80, hostPort: 81}, {containerPort: 90}")), nil},
		"same port":           {pod("a", ports("{containerPort: 80, hostPort: 80}")) + pod("b", ports("{containerPort: 8080, hostPort: 80}")), []string{"f:12:69: error: spec.containers[0].ports[0].hostPort: 80 is already used by default/a (f:6); change one of the ports"}},
		"different protocols": {pod("a", ports("{containerPort: 80, hostPort: 80}")) + pod("b", ports("{containerPort: 80, hostPort: 80, protocol: UDP}")), nil},
		"different addresses": {pod("a", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}")) + pod("b", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.2}")), nil},
		"several addresses": {pod("a", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}, {containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}")) + pod("b", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}")),
			[]string{"f:12:67: error: spec.containers[0].ports[0].hostPort: 80 is already used by default/a (f:6); change one of the ports"}},
		"every address": {pod("a", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}")) + pod("b", ports("{containerPort: 80, hostPort: 80, hostIP: 0.0.0.0}")),
			[]string{"f:12:67: error: spec.containers[0].ports[0].hostPort: 80 is already used by default/a (f:6); change one of the ports"}},
		"host network": {pod("a", "hostNetwork: true\n  "+ports("{containerPort: 80}")) + pod("b", "hostNetwork: true\n  "+ports("{containerPort: 80}")),
			[]string{"f:14:47: error: spec.containers[0].ports[0].hostPort: 80 is already used by default/a (f:7); change one of the ports"}},
		"init container":              {pod("a", "initContainers: [{name: i, image: i, ports: [{containerPort: 80, hostPort: 80}]}]\n  "+ports("")) + pod("b", ports("{containerPort: 80, hostPort: 80}")), nil},
		"pods that run to completion": {pod("a", never+ports("{containerPort: 80, hostPort: 80}")) + pod("b", "restartPolicy: OnFailure\n  "+ports("{containerPort: 80, hostPort: 80}")), nil},
		"a pod that runs forever before a pod that runs to completion": {pod("a", ports("{containerPort: 80, hostPort: 80}")) + pod("b", never+ports("{containerPort: 80, hostPort: 80}")),
			[]string{"f:13:67: error: spec.containers[0].ports[0].hostPort: 80 is already used by default/a (f:6); change one of the ports"}},
		"a pod that runs to completion before a pod that runs forever": {pod("a", never+ports("{containerPort: 80, hostPort: 80}")) + pod("b", ports("{containerPort: 80, hostPort: 80}")),
			[]string{"f:13:67: error: spec.containers[0].ports[0].hostPort: 80 is already used by default/a (f:7); change one of the ports"}},
		"sidecar": {pod("a", "initContainers: [{name: i, image: i, restartPolicy: Always, ports: [{containerPort: 80, hostPort: 80}]}]\n  "+ports("")) + pod("b", ports("{containerPort: 80, hostPort: 80}")),
			[]string{"f:13:67: error: spec.containers[0].ports[0].hostPort: 80 is already used by default/a (f:6); change one of the ports"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := decode.File([]byte(tt.text), decode.Options{Path: "f", NodeName: "n"})
			if f.HasRefusedDocument() || len(f.Pods) != 2 {
				t.Fatalf("got %d pods with problems %v, want valid pods", len(f.Pods), f.Problems)
			}
			if diff := cmp.Diff(tt.want, lines(manifest.FindHostPortConflicts(f.Pods))); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			for _, p := range manifest.FindHostPortConflicts(f.Pods) {
				if !strings.HasSuffix(p.Pod.Name, "-n") {
					t.Errorf("pod of the problem: got %s, want the name with the suffix -n", p.Pod)
				}
			}
		})
	}
}

func lines(problems []manifest.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}
