//go:build e2e

package cluster

import (
	"net/http"
	"strings"
	"testing"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/manifesttest"
)

const trustBundlesPath = "/apis/certificates.k8s.io/v1/clustertrustbundles"

// trustBundle returns a ClusterTrustBundle with the label stage=prod.
func trustBundle(name, signer, certificate string) *certificates.ClusterTrustBundle {
	return &certificates.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"stage": "prod"}},
		Spec:       certificates.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: certificate},
	}
}

// TestTrustBundles checks that a pod gets the certificates of ClusterTrustBundles from the cluster,
// with the permissions of a node, and that its files follow changes of the bundles.
func TestTrustBundles(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "o4").start()
	a.untilReady()
	createServiceAccount(t)
	first, second := manifesttest.CACertificate(t, "first"), manifesttest.CACertificate(t, "second")
	p := boundPod(a.node, "o4-app")
	p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(1000)), FSGroup: new(int64(2000))}
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	addVolume(p, "trust", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Name: new("o4-roots"), Path: "roots.pem"}},
		{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{SignerName: new("o4.example.com/mesh"), LabelSelector: prod, Optional: new(true), Path: "mesh.pem"}},
	}}})
	create(t, inDefault+"pods", p.Name, p)
	a.untilWaiting(p.Name, "ContainerCreating", `clustertrustbundle.certificates.k8s.io "o4-roots" not found`)
	create(t, trustBundlesPath, "o4-roots", trustBundle("o4-roots", "", "Root\n"+first))
	a.untilOutput(p.Name, strings.TrimSpace(first), "cat", "/trust/roots.pem")
	a.untilOutput(p.Name, "1000 2000 640", "stat", "-L", "-c", "%u %g %a", "/trust/roots.pem")
	a.untilOutput(p.Name, "0", "stat", "-L", "-c", "%s", "/trust/mesh.pem")

	create(t, trustBundlesPath, "o4.example.com:mesh:b", trustBundle("o4.example.com:mesh:b", "o4.example.com/mesh", second+first))
	a.untilOutput(p.Name, strings.TrimSpace(second+first), "cat", "/trust/mesh.pem")
	create(t, trustBundlesPath, "o4.example.com:mesh:a", trustBundle("o4.example.com:mesh:a", "o4.example.com/mesh", first))
	a.untilOutput(p.Name, strings.TrimSpace(first+second), "cat", "/trust/mesh.pem")
	if err := plane.do(http.MethodPatch, trustBundlesPath+"/o4-roots", map[string]any{"spec": map[string]any{"trustBundle": second}}, nil); err != nil {
		t.Fatal(err)
	}
	a.untilOutput(p.Name, strings.TrimSpace(second), "cat", "/trust/roots.pem")
	// A bundle that was deleted stays in the files of a running pod.
	if err := plane.do(http.MethodDelete, trustBundlesPath+"/o4-roots", nil, nil); err != nil {
		t.Fatal(err)
	}
	a.kill()
	a.start()
	a.untilOutput(p.Name, strings.TrimSpace(second), "cat", "/trust/roots.pem")
}
