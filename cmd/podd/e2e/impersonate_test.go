//go:build e2e

package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// policyFor returns a policy that grants one rule to the user bob.
func policyFor(rule string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [` + rule + `]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: User, name: bob}]}
`
}

// kubectlAsBob returns a kubectl that authenticates as user bob with a bearer token.
func (d *daemon) kubectlAsBob(token string) *kubectl {
	d.t.Helper()
	k := d.kubectl()
	k.config = filepath.Join(d.dir, "bob")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: bob}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:%d", insecure-skip-tls-verify: true}}], users: [{name: bob, user: {token: %s}}]}`, d.api, token)
	if err := os.WriteFile(k.config, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return k
}

// TestKubectlImpersonatesRoot checks that a user who may impersonate every user does not become
// root on the node, and that auth can-i reports this.
func TestKubectlImpersonatesRoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tokens := write("tokens", "abc,bob,1\n")
	for name, args := range map[string][]string{
		"AlwaysAllow": {"--authorization-mode", "AlwaysAllow"},
		"wildcard policy": {"--authorization-policy-file", write("wildcard", policyFor(
			`{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}, {nonResourceURLs: ["*"], verbs: ["*"]}`))},
		"impersonate rule": {"--authorization-policy-file", write("impersonate", policyFor(
			`{apiGroups: [""], resources: [users, groups, serviceaccounts], verbs: [impersonate]}, {apiGroups: [""], resources: [pods], verbs: [get]}`))},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t, shared, append(args, "--token-auth-file", tokens, "--address", "127.0.0.1")...)
			d.api = freePort(t)
			d.start()
			d.apply(d.pod("web", shell("main", serve("main"))))
			d.untilApplied("web")
			web, k := d.podName("web"), d.kubectlAsBob("abc")
			asRoot := " --as x --as-group system:masters"
			k.wantFailure("get pod "+web+asRoot, "(Forbidden)")
			k.wantFailure("debug "+web+" --image x -c spy --profile sysadmin"+asRoot, "(Forbidden)")
			k.wantFailure("auth can-i patch pods/ephemeralcontainers"+asRoot, `groups "system:masters" is forbidden: User "bob" cannot impersonate resource "groups"`)
			d.wantPatchForbidden("abc", http.Header{"Impersonate-User": {"x"}, "Impersonate-Group": {"system:masters"}})
			d.wantPatchForbidden("abc", http.Header{"Impersonate-User": {"podd-admin"}})
			d.wantPatchForbidden("abc", nil)
			k.wantCanI("impersonate groups/system:masters", "no")
			k.wantCanI("impersonate groups", "no")
			k.wantCanI("impersonate *", "no")
			k.wantCanI("* *", "no")
			k.wantCanI("patch pods/ephemeralcontainers", "no")
			k.wantCanI("patch pods --subresource=*", "no")
			k.wantCanI("impersonate groups/ops", "yes")
			k.wantCanI("impersonate users/prom", "yes")
			k.wantCanI("get pods --as bob --as-group ops", "yes")
			k.wantOutput("auth whoami --as bob --as-group ops", "bob", "ops")
			for line := range strings.Lines(k.run("auth", "can-i", "--list")) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "groups") || strings.HasPrefix(line, "*.* ") && !strings.HasSuffix(line, "[get list watch]") {
					t.Errorf("kubectl auth can-i --list: got the line %q, want no impersonation of all groups and only the verbs get, list and watch for \"*.*\"", line)
				}
			}
			v, err := d.state()
			if err != nil {
				t.Fatal(err)
			}
			if p := d.find(v, "web"); len(p.Pod.Spec.EphemeralContainers) > 0 {
				t.Errorf("pod web after the rejected requests: got ephemeral containers %+v, want none", p.Pod.Spec.EphemeralContainers)
			}
			root := d.kubectl()
			root.wantCanI("impersonate groups/system:masters", "yes")
			root.wantCanI("patch pods/ephemeralcontainers"+asRoot, "yes")
			root.wantCanI("patch pods/ephemeralcontainers --as bob", "no")
		})
	}
}

// wantPatchForbidden sends a patch that adds a privileged container. The test fails unless the
// response is 403.
func (d *daemon) wantPatchForbidden(token string, header http.Header) {
	d.t.Helper()
	const body = `{"spec":{"ephemeralContainers":[{"name":"spy","image":"x","securityContext":{"privileged":true}}]}}`
	c := d.client(fmt.Sprintf("https://127.0.0.1:%d", d.api), &tls.Config{InsecureSkipVerify: true})
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPatch, c.server+"/api/v1/namespaces/default/pods/"+d.podName("web")+"/ephemeralcontainers", strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	resp, err := c.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		d.t.Errorf("adding a privileged ephemeral container with the headers %v: got %s, want 403", header, resp.Status)
	}
}

// wantCanI fails the test unless the output of kubectl auth can-i is want.
func (k *kubectl) wantCanI(words, want string) {
	k.d.t.Helper()
	out, stderr, _ := k.try("", append([]string{"auth", "can-i"}, strings.Fields(words)...)...) // the error is ignored, because kubectl exits with 1 if it prints "no"
	if strings.TrimSpace(out) != want {
		k.d.t.Errorf("kubectl auth can-i %s: got stdout %q, stderr %s; want stdout %q", words, out, stderr, want)
	}
}
