package objects

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
	"podd/manifest/refs"
)

// trustBundleVolume returns a volume of ClusterTrustBundles.
func trustBundleVolume(source v1.ClusterTrustBundleProjection) v1.VolumeSource {
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ClusterTrustBundle: &source}}}}
}

func newTrustBundle(name, signer, text string) *certificates.ClusterTrustBundle {
	return &certificates.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificates.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
}

// trustBundles describes the published bundles to which source refers: "true" and the texts of the
// bundles, or "false" and the reason why a bundle is missing.
func (l *testResolver) trustBundles(source v1.ClusterTrustBundleProjection) string {
	o, ref := l.objects(), refs.TrustBundleRef(&source)
	found := o.Cluster.SignerTrustBundles[ref.Name]
	if b := o.TrustBundles[ref.NamespacedName]; b != nil {
		found = append(found, b)
	}
	text := o.Cluster.Missing[ref].Message
	for _, b := range found {
		text += b.Spec.TrustBundle
	}
	return fmt.Sprintf("%t %s", found != nil, text)
}

// TestTrustBundles checks that podd watches ClusterTrustBundles by name and by signer, in the
// API version that the API server serves.
func TestTrustBundles(t *testing.T) {
	name, signer := "roots", "example.com/mesh"
	byName, bySigner := v1.ClusterTrustBundleProjection{Name: &name}, v1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: &metav1.LabelSelector{}}
	// notServed returns a fault that responds as an API server without the given API versions.
	notServed := func(versions ...string) func(*http.Request) (*http.Response, error) {
		return func(q *http.Request) (*http.Response, error) {
			for _, version := range versions {
				if strings.HasPrefix(q.URL.Path, "/apis/certificates.k8s.io/"+version+"/clustertrustbundles") {
					return clustertest.ErrorResponse(apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "", 0, false)), nil
				}
			}
			return nil, nil
		}
	}
	for version, fault := range map[string]func(*http.Request) (*http.Response, error){"v1": nil, "v1beta1": notServed("v1")} {
		runResolver(t, nil, func(l *testResolver) {
			check := func(source v1.ClusterTrustBundleProjection, want string) {
				t.Helper()
				if got := l.trustBundles(source); got != want {
					t.Errorf("%s: %+v: got %q, want %q", version, source, got, want)
				}
			}
			l.Change(func() {
				l.Fault = fault
				l.PutPod(clustertest.NewPodWithVolumes("a", trustBundleVolume(byName), trustBundleVolume(bySigner)), "ADDED")
			})
			clustertest.Advance(100 * time.Millisecond)
			check(byName, `false clustertrustbundle.certificates.k8s.io "roots" not found`)
			check(bySigner, "true ")
			l.Change(func() {
				l.PutObject("clustertrustbundles", newTrustBundle("roots", "", "1"), "ADDED")
				l.PutObject("clustertrustbundles", newTrustBundle("example.com:mesh:a", signer, "2"), "ADDED")
			})
			check(byName, "true 1")
			l.Change(func() { l.PutObject("clustertrustbundles", newTrustBundle("roots", "", "3"), "MODIFIED") })
			check(byName, "true 3")
			if got := l.trustBundles(bySigner); !strings.Contains(got, "2") {
				t.Errorf("%s: bundles of the signer: got %q, want the added bundle with the text \"2\"", version, got)
			}
			l.Change(func() { l.PutObject("clustertrustbundles", newTrustBundle("roots", "", "3"), "DELETED") })
			check(byName, `false clustertrustbundle.certificates.k8s.io "roots" not found`)
			l.Change(func() { l.PutPod(clustertest.NewPodWithVolumes("a"), "DELETED") })
			check(bySigner, "false ")
		})
	}
	runResolver(t, nil, func(l *testResolver) {
		l.Change(func() {
			l.Fault = notServed("v1", "v1beta1")
			l.PutPod(clustertest.NewPodWithVolumes("a", trustBundleVolume(byName)), "ADDED")
		})
		clustertest.Advance(time.Second)
		missing := l.objects().Cluster.Missing[manifest.ObjectRef{Kind: "ClusterTrustBundle", NamespacedName: types.NamespacedName{Name: name}}]
		want := `requesting clustertrustbundle.certificates.k8s.io "roots" from the API server: ClusterTrustBundles are served neither in certificates.k8s.io/v1 nor in v1beta1: `
		if missing.DoesNotExist || !strings.HasPrefix(missing.Message, want) {
			t.Errorf("no served version: got missing object %+v, want one with DoesNotExist false and a message that starts with %q", missing, want)
		}
		l.Change(func() {
			l.Fault = nil
			l.PutObject("clustertrustbundles", newTrustBundle("roots", "", "1"), "ADDED")
		})
		clustertest.Advance(apiserver.MaxUncachedWait)
		if got := l.trustBundles(byName); got != "true 1" {
			t.Errorf("after an upgrade of the API server: got %q, want \"true 1\"", got)
		}
	})
}
