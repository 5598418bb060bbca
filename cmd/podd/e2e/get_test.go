//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestGetAndDescribe: what the verbs say of a pod that runs, and of the node; no
// value of a Secret is among it.
func TestGetAndDescribe(t *testing.T) {
	t.Parallel()
	d := begin(t)
	c := shell("main", serve("main"))
	c.Env = []v1.EnvVar{{Name: "KEY", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "db"}, Key: "password"}}}}
	d.write("db", "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2hunter2}\n")
	d.apply(d.pod("web", c))
	d.untilApplied("web")
	full := d.full("web")
	if out, _ := d.verb("get", "pods"); !strings.HasPrefix(out, "NAME ") || !strings.Contains(out, full+"   1/1     Running   0 ") {
		t.Errorf("get pods says\n%s", out)
	}
	if out, _ := d.verb("get", "po,no,secrets", "-A", "-o", "name"); out != "pod/"+full+"\nnode/"+d.host+"\nsecret/db\n" {
		t.Errorf("the names are\n%s", out)
	}
	var pod v1.Pod
	out, _ := d.verb("get", "pod", "web", "-o", "json")
	if err := json.Unmarshal([]byte(out), &pod); err != nil || pod.Name != full || pod.Status.Phase != v1.PodRunning {
		t.Errorf("%v:\n%s", err, out)
	}
	out, _ = d.verb("describe", "pod", "web")
	for _, want := range []string{"Name:         " + full + "\n", "Why:", "runs", "KEY:  <set to the key 'password' in secret 'db'>", "Started container main", "/trace from trace (rw)"} {
		if !strings.Contains(out, want) {
			t.Errorf("describe pod has no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "hunter2") {
		t.Error("describe pod tells a secret")
	}
	out, _ = d.verb("describe", "node")
	for _, want := range []string{d.host + "\n", "Ready", full, "Allocated resources:"} {
		if !strings.Contains(out, want) {
			t.Errorf("describe node has no %q:\n%s", want, out)
		}
	}
}
