package refs_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
)

// chapPod returns a pod with two iSCSI disks that require CHAP: an inline volume and a PersistentVolume.
func chapPod() *manifest.Pod {
	p := clusterPod()
	p.Object.Spec = v1.PodSpec{NodeName: "n1", ServiceAccountName: "default", Volumes: []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "own", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{SessionCHAPAuth: true, SecretRef: &v1.LocalObjectReference{Name: "key"}}}},
	}}
	return p
}

// chapObjects returns the objects of chapPod, with a Secret for each disk.
func chapObjects(p *manifest.Pod) manifest.Objects {
	o := clusterObjects(p)
	o.Volumes[types.NamespacedName{Name: "pv1"}].Spec.ISCSI = &v1.ISCSIPersistentVolumeSource{
		DiscoveryCHAPAuth: true, SecretRef: &v1.SecretReference{Namespace: "storage", Name: "key"},
	}
	o.Secrets[shopName("key")] = &v1.Secret{ObjectMeta: meta("key"), Data: map[string][]byte{"node.session.auth.username": []byte("u"), "node.session.auth.password": []byte("shop")}}
	o.Secrets[types.NamespacedName{Namespace: "storage", Name: "key"}] = &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "key"},
		Data:       map[string][]byte{"discovery.sendtargets.auth.username": []byte("u"), "discovery.sendtargets.auth.password": []byte("storage")},
	}
	o.Cluster.AttachedVolumes = map[string]map[string]string{"kubernetes.io/iscsi/::0": nil}
	return o
}

func TestResolved_CHAPSecret(t *testing.T) {
	p := chapPod()
	o := chapObjects(p)
	_, s := resolve(p, o, nil)
	if s.Blocker != (refs.Blocker{}) {
		t.Fatalf("got Blocker %+v, want none", s.Blocker)
	}
	for i, want := range []string{"storage", "shop"} {
		secret := s.CHAPSecret(&p.Object.Spec.Volumes[i])
		if secret == nil || string(secret.Data["node.session.auth.password"])+string(secret.Data["discovery.sendtargets.auth.password"]) != want {
			t.Errorf("volume %d: got %v, want the Secret with %q", i, secret, want)
		}
	}
	changed := chapObjects(p)
	changed.Secrets[shopName("key")].Data["node.session.auth.password"] = []byte("new")
	if _, again := resolve(p, changed, nil); again.MountDigest == s.MountDigest {
		t.Error("got the same MountDigest after the password has changed, want another one: a failed login must be tried again")
	}
}

// TestResolved_CHAPSecretMissing checks that a pod waits for its Secrets and their keys.
func TestResolved_CHAPSecretMissing(t *testing.T) {
	p := chapPod()
	o := chapObjects(p)
	delete(o.Secrets[shopName("key")].Data, "node.session.auth.password")
	if _, s := resolve(p, o, nil); !strings.Contains(s.MissingMessage, "non-existent secret key: node.session.auth.password") || s.Volume != "own" {
		t.Errorf("got Blocker %+v, want one for the volume \"own\" whose message names the missing key", s.Blocker)
	}
	delete(o.Secrets, shopName("key"))
	if _, s := resolve(p, o, nil); !strings.Contains(s.MissingMessage, "is being looked up") {
		t.Errorf("got Blocker %+v, want one whose message contains \"is being looked up\"", s.Blocker)
	}
}

// TestListDriverRefs_CHAP checks the references to the attachments and Secrets of iSCSI disks. A volume
// without CHAP has no Secret, and a Secret with an invalid name is not looked up.
func TestListDriverRefs_CHAP(t *testing.T) {
	p := chapPod()
	o := chapObjects(p)
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, u := range refs.ListDriverRefs(&o, p.Object) {
			got = append(got, u.Object.Kind+" "+u.Object.NamespacedName.String()+" "+u.FieldPath)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	const attachment = "VolumeAttachment /kubernetes.io/iscsi/::0 "
	check("Secret storage/key spec.volumes[0].iscsi.secretRef", attachment+"spec.volumes[0]",
		"Secret shop/key spec.volumes[1].iscsi.secretRef", attachment+"spec.volumes[1]")
	p.Object.Spec.Volumes[1].ISCSI.SessionCHAPAuth = false
	o.Volumes[types.NamespacedName{Name: "pv1"}].Spec.ISCSI.SecretRef.Name = "../key"
	check(attachment+"spec.volumes[0]", attachment+"spec.volumes[1]")
}
