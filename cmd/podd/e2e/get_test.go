//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestGetAndDescribe checks podd get and podd describe for a running pod and the node. They
// must not print the value of a Secret.
func TestGetAndDescribe(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	c := shell("main", serve("main"))
	c.Env = []v1.EnvVar{{Name: "KEY", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "db"}, Key: "password"}}}}
	d.write("db", "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2hunter2}\n")
	d.apply(d.pod("web", c))
	d.untilApplied("web")
	full := d.podName("web")
	if out, _ := d.verb("get", "pods"); !strings.HasPrefix(out, "NAME ") || !strings.Contains(out, full+"   1/1     Running   0 ") {
		t.Errorf("podd get pods: got\n%s, want a table in which %s is Running", out, full)
	}
	if out, _ := d.verb("get", "po,no,secrets", "-A", "-o", "name"); out != "pod/"+full+"\nnode/"+d.host+"\nsecret/db\n" {
		t.Errorf("podd get -o name: got\n%s, want the names of the pod, the node and the Secret", out)
	}
	var pod v1.Pod
	out, _ := d.verb("get", "pod", "web", "-o", "json")
	if err := json.Unmarshal([]byte(out), &pod); err != nil || pod.Name != full || pod.Status.Phase != v1.PodRunning {
		t.Errorf("podd get pod -o json: got error %v and output\n%s, want %s running", err, out, full)
	}
	d.untilEvent("web", 1, "Started") // The pod may be ready before podd records this event.
	out, _ = d.verb("describe", "pod", "web")
	for _, want := range []string{"Name:         " + full + "\n", "Why:", "runs", "KEY:  <set to the key 'password' in secret 'db'>", "Started container main", "/trace from trace (rw)"} {
		if !strings.Contains(out, want) {
			t.Errorf("podd describe pod: got\n%s\nwant %q in it", out, want)
		}
	}
	if strings.Contains(out, "hunter2") {
		t.Errorf("podd describe pod: got\n%s\nwant no value of a Secret", out)
	}
	out, _ = d.verb("describe", "node")
	for _, want := range []string{d.host + "\n", "Ready", full, "Allocated resources:"} {
		if !strings.Contains(out, want) {
			t.Errorf("podd describe node: got\n%s\nwant %q in it", out, want)
		}
	}
}
