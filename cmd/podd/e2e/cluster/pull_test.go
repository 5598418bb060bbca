//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
)

// tokenPlugin is a credential provider that returns credentials if the request contains a token and the
// annotation of the service account "puller". It records its requests.
const tokenPlugin = `#!/bin/sh
here=$(dirname "$0")
request=$(cat)
echo "$request" >> "$here/requests"
case $request in
*'"serviceAccountToken":"ey'*'"example.com/role":"pull"'*) auth='"%[1]s": {"username": "ann", "password": "hunter2"}' ;;
esac
echo '{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse", "cacheKeyType": "Registry", "cacheDuration": "0s", "auth": {'"$auth"'}}'`

const tokenPluginConfig = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: cloud
  matchImages: ["%[1]s/team"]
  defaultCacheDuration: 0s
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  tokenAttributes:
    serviceAccountTokenAudience: registry.example
    cacheType: ServiceAccount
    requireServiceAccount: true
    optionalServiceAccountAnnotationKeys: [example.com/role]
`

// allowAudience allows a node to read service accounts and to request tokens for the audience
// registry.example.
func allowAudience(t *testing.T, node string) {
	t.Helper()
	const group = "/apis/rbac.authorization.k8s.io/v1/"
	name := "pulls-" + node
	create(t, group+"clusterroles", name, &rbac.ClusterRole{ObjectMeta: objectMeta(name), Rules: []rbac.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"}},
		{Verbs: []string{"request-serviceaccounts-token-audience"}, APIGroups: []string{""}, Resources: []string{"registry.example"}},
	}})
	create(t, group+"clusterrolebindings", name, &rbac.ClusterRoleBinding{
		ObjectMeta: objectMeta(name), RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbac.Subject{{Kind: rbac.UserKind, APIGroup: rbac.GroupName, Name: "system:node:" + node}},
	})
}

// untilPodIs waits until the API server has a status of a pod for which check returns nil.
func untilPodIs(a *agent, name string, check func(*v1.Pod) error) {
	a.t.Helper()
	a.eventually(name+" has the status", func() error {
		var p v1.Pod
		return errors.Join(plane.do(http.MethodGet, inDefault+"pods/"+name, nil, &p), check(&p))
	})
}

// waitsFor returns a check that a pod has a container that waits with one of reasons.
func waitsFor(reasons ...string) func(*v1.Pod) error {
	return func(p *v1.Pod) error {
		for _, c := range p.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil && strings.Contains(strings.Join(reasons, " "), w.Reason) {
				return nil
			}
		}
		return fmt.Errorf("got the containers %+v, want one that waits with a reason of %v", p.Status.ContainerStatuses, reasons)
	}
}

// TestPull_ServiceAccount checks that a credential provider gets the token of the pod's service account,
// and that only pods with the same service account can use the pulled image, also after podd was
// killed.
func TestPull_ServiceAccount(t *testing.T) {
	t.Parallel()
	r, err := registry.Start(registry.Options{User: "ann", Password: "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	image, err := registry.FromTarball(runtimeStack.Tools.Images, stack.BusyboxImage)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := r.Push(image, "team/busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "cloud"), fmt.Appendf(nil, tokenPlugin, r.Host()), 0o755),
		os.WriteFile(config, fmt.Appendf(nil, tokenPluginConfig, r.Host()), 0o600)); err != nil {
		t.Fatal(err)
	}
	const node = "n21"
	allowAudience(t, node)
	for name, annotations := range map[string]map[string]string{"puller": {"example.com/role": "pull", "other": "x"}, "stranger": nil} {
		create(t, inDefault+"serviceaccounts", name, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}})
	}
	a := newAgent(t, node, "--image-credential-provider-config", config, "--image-credential-provider-bin-dir", dir).start()
	createPod := func(name, account string, policy v1.PullPolicy) {
		t.Helper()
		p := boundPod(node, name)
		p.Spec.ServiceAccountName = account
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = ref, policy
		create(t, inDefault+"pods", name, p)
	}
	createPod("first", "puller", v1.PullIfNotPresent)
	a.untilRunning("first")
	requests := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "requests"))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	before, pulls := requests(), r.RequestCount("/manifests/")
	if strings.Contains(before, `"other"`) || strings.Count(before, "\n") != 1 {
		t.Errorf("got requests %s to the credential provider, want one, with only the requested annotation", before)
	}
	createPod("same", "puller", v1.PullIfNotPresent)
	createPod("same-never", "puller", v1.PullNever)
	a.untilRunning("same")
	a.untilRunning("same-never")
	if now := requests(); now != before || r.RequestCount("/manifests/") != pulls {
		t.Errorf("got %d further requests for image manifests, requests %s to the credential provider; want no further requests", r.RequestCount("/manifests/")-pulls, now)
	}
	createPod("stranger", "stranger", v1.PullIfNotPresent)
	createPod("stranger-never", "stranger", v1.PullNever)
	untilPodIs(a, "stranger", waitsFor("ErrImagePull", "ImagePullBackOff"))
	untilPodIs(a, "stranger-never", waitsFor("ErrImageNeverPull"))
	a.kill()
	a.start()
	createPod("later", "puller", v1.PullNever)
	a.untilRunning("later")
	createPod("stranger-later", "stranger", v1.PullNever)
	untilPodIs(a, "stranger-later", waitsFor("ErrImageNeverPull"))
	if log, err := os.ReadFile(a.logFile()); err != nil || strings.Contains(string(log), "hunter2") || strings.Contains(string(log), "eyJ") {
		t.Errorf("podd's log: got a password or a token in it, or a read error (%v); want neither", err)
	}
}
