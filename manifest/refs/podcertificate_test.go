package refs_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
)

// TestResolveSet_PodCertificate checks that a pod with a podCertificate volume source waits for its
// certificate, and that a new certificate changes the digest of files.
func TestResolveSet_PodCertificate(t *testing.T) {
	p := clusterPod()
	p.Object.Spec.Volumes = append(p.Object.Spec.Volumes, v1.Volume{Name: "own", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
		Sources: []v1.VolumeProjection{{PodCertificate: &v1.PodCertificateProjection{SignerName: "example.com/mesh", KeyType: "ED25519", KeyPath: "key"}}}}}})
	ref := refs.PodCertificateRef(p.Object, "own", 0)
	o := clusterObjects(p)
	var digests []string
	for _, test := range []struct {
		missing     *manifest.MissingObject
		certificate *manifest.PodCertificate
		want        refs.Blocker
	}{
		{nil, nil, refs.Blocker{MissingMessage: "a certificate of the pod is being looked up", EndsByItself: true}},
		{&manifest.MissingObject{Message: "not issued", WillExist: true}, nil, refs.Blocker{MissingMessage: "not issued", Volume: "own", EndsByItself: true}},
		{&manifest.MissingObject{Message: "denied", Remedy: "delete the pod"}, nil, refs.Blocker{MissingMessage: "denied", Volume: "own", Remedy: "delete the pod"}},
		{nil, &manifest.PodCertificate{Key: []byte("k"), Chain: []byte("c")}, refs.Blocker{}},
		{nil, &manifest.PodCertificate{Key: []byte("k"), Chain: []byte("c2")}, refs.Blocker{}},
		{nil, &manifest.PodCertificate{Key: []byte("k2"), Chain: []byte("c2")}, refs.Blocker{}},
	} {
		delete(o.Cluster.Missing, ref)
		if test.missing != nil {
			o.Cluster.Missing[ref] = *test.missing
		}
		o.Cluster.PodCertificates = map[types.NamespacedName]*manifest.PodCertificate{}
		if test.certificate != nil {
			o.Cluster.PodCertificates[ref.NamespacedName] = test.certificate
		}
		_, s := resolve(p, o, nil)
		if s.Blocker != test.want || s.PodCertificate("own", 0) != test.certificate {
			t.Errorf("got Blocker %+v, certificate %v; want Blocker %+v, certificate %v", s.Blocker, s.PodCertificate("own", 0), test.want, test.certificate)
		}
		digests = append(digests, s.FilesDigest)
	}
	o.Cluster.Missing[ref] = manifest.MissingObject{Message: "not issued", WillExist: true}
	o.Cluster.PodCertificates = nil
	token := manifest.ObjectRef{Kind: "TokenRequest", NamespacedName: shopName("u1/3600/")}
	delete(o.Cluster.Tokens, token.NamespacedName)
	o.Cluster.Missing[token], o.Cluster.Missing[ref] = manifest.MissingObject{Message: "no token", WillExist: true}, manifest.MissingObject{Message: "denied"}
	if _, s := resolve(p, o, nil); s.MissingMessage != "denied" || s.EndsByItself {
		t.Errorf("pending token and denied certificate: got Blocker %+v, want one with the message \"denied\"", s.Blocker)
	}
	if digests[3] == digests[4] || digests[4] == digests[5] || digests[2] == digests[3] {
		t.Errorf("got digests %q, want a different digest for each certificate", digests)
	}
}
