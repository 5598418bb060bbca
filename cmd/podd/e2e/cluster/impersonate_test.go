//go:build e2e

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbac "k8s.io/api/rbac/v1"
)

// TestImpersonation checks that a service account with all permissions in the cluster does not
// become root on the node by impersonation, and that kubectl auth can-i reports this.
func TestImpersonation(t *testing.T) {
	t.Parallel()
	all := []string{"*"}
	token := plane.tokenFor(t, "almighty", rbac.PolicyRule{Verbs: all, APIGroups: all, Resources: all}, rbac.PolicyRule{Verbs: all, NonResourceURLs: all})
	a, port := newServingAgent(t, "n18")
	a.start().untilReady()
	a.pod("web")
	a.untilRunning("web")

	kubeconfig := filepath.Join(t.TempDir(), "almighty")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: almighty}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:%s", insecure-skip-tls-verify: true}}], users: [{name: almighty, user: {token: %s}}]}`, port, token)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const asRoot, asOps = " --as x --as-group system:masters", " --as system:serviceaccount:default:almighty --as-group ops"
	for _, c := range []struct {
		words, want string
		refused     bool
	}{
		{"get pod web-n18", "Running", false},
		{"get pod web-n18" + asOps, "Running", false},
		{"auth whoami" + asOps, "ops", false},
		{"get pod web-n18" + asRoot, `groups "system:masters" is forbidden`, true},
		{"debug web-n18 --image podd.test/busybox:1 -c spy --profile sysadmin" + asRoot, `groups "system:masters" is forbidden`, true},
		{"debug web-n18 --image podd.test/busybox:1 -c spy --profile sysadmin" + asOps, "forbidden", true},
		{"debug web-n18 --image podd.test/busybox:1 -c spy --profile sysadmin", "forbidden", true},
		{"get pod web-n18 --as podd-admin", `User "podd-admin" cannot get`, true},
		{"auth can-i patch pods/ephemeralcontainers" + asRoot, `groups "system:masters" is forbidden`, true},
		{"auth can-i impersonate groups/system:masters", "no", true},
		{"auth can-i impersonate groups/ops", "yes", false},
		{"auth can-i patch pods/ephemeralcontainers", "no", true},
	} {
		out, err := kubectlWith(t, kubeconfig, strings.Fields(c.words)...)
		if (err != nil) != c.refused || !strings.Contains(out, c.want) {
			t.Errorf("kubectl %s: got error %v and output %q, want %q in the output and an error: %t", c.words, err, out, c.want, c.refused)
		}
	}
	if out, err := a.verb("get", "pod", "web", "-o", "yaml"); err != nil || strings.Contains(out, "spy") {
		t.Errorf("podd get pod: got error %v and output %s, want no container \"spy\"", err, out)
	}
}
