//go:build e2e

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
)

// TestSecretsOfManifests checks that podd shows the data of Secrets in manifest files only to
// root and to users who may create nodes/proxy or get the Secret. Other users must get the
// objects without data. All users of the API server's proxy must get no data, because the API
// server does not send the user to podd.
func TestSecretsOfManifests(t *testing.T) {
	rule := func(verb, resource string, names ...string) rbac.PolicyRule {
		return rbac.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names}
	}
	getProxy := rule("get", "nodes/proxy")
	tokens := map[string]string{
		"get":    plane.tokenFor(t, "looks", getProxy),
		"create": plane.tokenFor(t, "creates", getProxy, rule("create", "nodes/proxy")),
		"reads":  plane.tokenFor(t, "reads", getProxy, rule("get", "secrets")),
		"one":    plane.tokenFor(t, "reads-one", getProxy, rule("get", "secrets", "own")),
	}
	a, port := newServingAgent(t, "n17")
	a.start().untilReady()
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: %s, annotations: {
kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"k":"hidden"}}', team: blue}}, stringData: {k: hidden}}
---
`
	a.write("with", fmt.Sprintf(secret+secret, "own", "other")+`{apiVersion: v1, kind: Pod, metadata: {name: with},
spec: {hostNetwork: true, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "podd.test/busybox:1", command: [sleep, "1000000"],
env: [{name: A, valueFrom: {secretKeyRef: {name: own, key: k}}}, {name: B, valueFrom: {secretKeyRef: {name: other, key: k}}}]}]}}`)
	a.untilRunning("with")
	const all, own = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/secrets/own"
	checkValues := func(user, path, body string, want int) {
		t.Helper()
		if n := strings.Count(body, "aGlkZGVu"); n != want || want == 0 && strings.Contains(body, "hidden") || !strings.Contains(body, "blue") {
			t.Errorf("user %s: GET %s: got %d values of Secrets, want %d, and want annotation team=blue: %s", user, path, n, want, body)
		}
	}
	for _, c := range []struct {
		user      string
		list, one int // expected numbers of values: list in the response for all Secrets, one in the response for the Secret own
	}{{"get", 0, 0}, {"create", 2, 1}, {"reads", 2, 1}, {"one", 0, 1}} {
		for path, want := range map[string]int{all: c.list, own: c.one, "/api/v1/secrets": c.list} {
			status, body, err := request(port, tokens[c.user], http.MethodGet, path)
			if err != nil || status != http.StatusOK {
				t.Fatalf("user %s: GET %s: got error %v, status %d, body %s; want status 200", c.user, path, err, status, body)
			}
			checkValues(c.user, path, body, want)
		}
	}
	// The proxy of the API server sends no user to podd, so even an administrator gets no values.
	for _, path := range []string{all, own} {
		body, err := plane.getText("/api/v1/nodes/n17/proxy" + path)
		if err != nil {
			t.Fatal(err)
		}
		checkValues("the API server", path, body, 0)
	}
	if out, err := kubectl(t, "get", "--raw", "/api/v1/nodes/n17/proxy"+own); err != nil || !strings.Contains(out, "Warning: Secrets are shown without their data") {
		t.Errorf("kubectl get --raw: got error %v, output %s; want %q in the output", err, out, "Warning: Secrets are shown without their data")
	}
	// podd's own socket shows the data to root, even while the API server is down.
	plane.killAPIServer(t)
	out, err := a.verb("get", "secret", "own", "-o", "json")
	if err != nil {
		t.Fatal(err, out)
	}
	var s v1.Secret
	if err := json.Unmarshal([]byte(out), &s); err != nil || string(s.Data["k"]) != "hidden" {
		t.Errorf("podd get secret: got error %v, output %s; want the value \"hidden\" of the key k", err, out)
	}
}
