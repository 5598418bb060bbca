//go:build e2e

package cluster

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDynamicConfig gives a node its configuration with a ConfigMap that an annotation of the Node names.
// podd must report that the node needs permission to read the ConfigMap. It must use a valid content and
// reject an invalid one. It must keep its configuration without an API server, and after the ConfigMap was
// deleted. If the API server is unreachable during a trial, podd must try the configuration again.
func TestDynamicConfig(t *testing.T) {
	t.Parallel()
	const configMaps, rolesPath, bindings = inDefault + "configmaps", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
	do := func(method, path string, body any) {
		t.Helper()
		if err := plane.do(method, path, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	annotate := func(value any) {
		t.Helper()
		do(http.MethodPatch, "/api/v1/nodes/n25", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"podd/config-source": value}}})
	}
	content := func(fields string) map[string]string {
		return map[string]string{"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields + "\n"}
	}
	a := newAgent(t, "n25")
	api := a.connectThroughLink()
	a.flags = append(a.flags, "--dynamic-config-dir", filepath.Join(a.dir, "dynamic"), "--dynamic-config-trial", "20s")
	a.start()
	a.untilReady()
	a.pod("web")
	a.untilRunning("web")
	a.untilConfig("LastKnownGood", "110")

	do(http.MethodPost, configMaps, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Data: content("maxPods: 50")})
	annotate("default/edge")
	a.untilPs("forbidden", true)
	a.untilConfig("ConfigNotUsed", "110")
	role := &rbac.Role{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Rules: []rbac.PolicyRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"edge"}}}}
	binding := &rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "edge"}, Subjects: []rbac.Subject{{Kind: rbac.UserKind, APIGroup: rbac.GroupName, Name: "system:node:n25"}}}
	do(http.MethodPost, rolesPath, role)
	do(http.MethodPost, bindings, binding)
	a.untilConfig("LastKnownGood", "50")
	a.untilPs("forbidden", false)

	do(http.MethodPatch, configMaps+"/edge", map[string]any{"data": content("maxPods: many")})
	a.untilPs("ConfigMap default/edge[kubelet]:3:1: error: maxPods: must be an integer", true)
	a.untilConfig("ConfigNotUsed", "50")
	do(http.MethodPatch, configMaps+"/edge", map[string]any{"data": content("maxPods: 51")})
	a.untilConfig("LastKnownGood", "51")
	do(http.MethodPatch, configMaps+"/edge", map[string]any{"data": content("maxPods: 52")})
	a.untilConfig("OnTrial", "52")
	api.cut()
	a.untilPs("the trial of the configuration in ConfigMap default/edge ended, because the API server was unreachable for 10s", true)
	api.mend()
	a.untilConfig("LastKnownGood", "52")
	a.untilPs("the trial of the configuration", false)
	do(http.MethodDelete, configMaps+"/edge", nil)
	a.untilConfig("ConfigNotUsed", "52")
	a.kill()
	a.start()
	a.untilConfig("ConfigNotUsed", "52")
	annotate(nil)
	a.untilConfig("LastKnownGood", "110")
	a.untilRunning("web")
}

// untilConfig waits until the condition of the configuration has a reason and the Node has a capacity of
// pods.
func (a *agent) untilConfig(reason, pods string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("the configuration is %s, with maxPods %s", reason, pods), func() error {
		n, err := plane.node(a.node)
		if err != nil {
			return err
		}
		if got, capacity := nodeCondition(n, "KubeletConfigOk").Reason, n.Status.Capacity.Pods().String(); got != reason || capacity != pods {
			return fmt.Errorf("got reason %q, capacity %s; want %q, %s", got, capacity, reason, pods)
		}
		return nil
	})
}
