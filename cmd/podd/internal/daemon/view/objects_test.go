package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

// TestObjectViews checks that objects get the fields that an API server sets. If two sources have the
// same object, an object of the API takes precedence over others, and an object of a file over that of a
// URL.
func TestObjectViews(t *testing.T) {
	const text = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {from: here}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /srv}, storageClassName: ""}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: disk, storageClassName: ""}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lost}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: none, storageClassName: ""}
`
	bundle := fmt.Sprintf("---\napiVersion: certificates.k8s.io/v1\nkind: ClusterTrustBundle\nmetadata: {name: roots}\nspec: {trustBundle: %q}\n", manifesttest.CACertificate(t, "a"))
	driver := "---\napiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: disk.example.com}\nspec: {attachRequired: false}\n"
	written := time.Unix(1700000000, 0)
	batch := func(source, kind string) manifest.Batch {
		f, err := decodeText(text+bundle+driver, decode.Options{Kind: kind, Source: source, Path: source + "/x.yaml", NodeName: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		b := merge.Files(source, kind, f)
		b.IsComplete = true
		b.FileStates = []manifest.FileState{{Path: source + "/x.yaml", ContentTime: written}}
		return b
	}
	set := merge.Batches([]manifest.Batch{batch("https://a.example", manifest.KindURL), batch("/etc/m", manifest.KindFile)})
	views := newObjectViews("")
	o := views.build(set)
	if len(o.ConfigMaps) != 1 || o.ConfigMaps[0].Path != "/etc/m/x.yaml" || o.ConfigMaps[0].Line != 2 {
		t.Fatalf("got %+v, want one ConfigMap at line 2 of /etc/m/x.yaml", o.ConfigMaps)
	}
	if c := o.ConfigMaps[0].Object; c.GetUID() == "" || !c.GetCreationTimestamp().Time.Equal(written) || c.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		t.Errorf("got %+v, want a ConfigMap with a UID, the kind and creation timestamp %v", c, written)
	}
	if len(o.TrustBundles) != 1 || o.TrustBundles[0].Object.GetObjectKind().GroupVersionKind().String() != "certificates.k8s.io/v1, Kind=ClusterTrustBundle" {
		t.Errorf("got %+v, want one ClusterTrustBundle", o.TrustBundles)
	}
	if len(o.CSIDrivers) != 1 || o.CSIDrivers[0].Object.GetObjectKind().GroupVersionKind().String() != "storage.k8s.io/v1, Kind=CSIDriver" {
		t.Errorf("got %+v, want one CSIDriver", o.CSIDrivers)
	}
	for n, want := range []struct {
		name, volume string
		phase        v1.PersistentVolumeClaimPhase
	}{{"data", "disk", v1.ClaimBound}, {"lost", "none", v1.ClaimPending}} {
		if c := o.Claims[n].Object.(*v1.PersistentVolumeClaim); c.Name != want.name || c.Spec.VolumeName != want.volume || c.Status.Phase != want.phase {
			t.Errorf("got claim %q of volume %q in phase %s, want %+v", c.Name, c.Spec.VolumeName, c.Status.Phase, want)
		}
	}
	if pv := o.Volumes[0].Object.(*v1.PersistentVolume); pv.Status.Phase != v1.VolumeBound || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Name != "data" {
		t.Errorf("got volume %+v, want it bound to the claim \"data\"", pv)
	}
	api := newObjectViews("")
	api.apiSource = "/var/api"
	both := merge.Batches([]manifest.Batch{batch("/etc/m", manifest.KindFile), batch("/var/api", manifest.KindFile)})
	if o := api.build(both); len(o.ConfigMaps) != 1 || o.ConfigMaps[0].Path != "/var/api/x.yaml" {
		t.Errorf("object in two sources: got %d ConfigMaps %+v, want only that of the API", len(o.ConfigMaps), o.ConfigMaps)
	}
	for _, own := range set.ObjectsBySource { // the decoded objects must not have been modified
		if c := own.ConfigMaps[types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "settings"}]; c.UID != "" {
			t.Error("got a UID in the decoded object, want it unmodified")
		}
	}
}

// TestObjectViews_Unchanged checks that the binding of each claim is computed once, and
// that the views of unchanged objects keep their pointers.
func TestObjectViews_Unchanged(t *testing.T) {
	const n = 200
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v%d}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /srv}, claimRef: {name: c%d}}\n", i, i)
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c%d}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", i)
	}
	text.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	f, err := decodeText(text.String(), decode.Options{Kind: manifest.KindFile, Source: "x", Path: "x"})
	if err != nil {
		t.Fatal(err)
	}
	set := merge.Batches([]manifest.Batch{merge.Files("x", manifest.KindFile, f)})
	views, lookups := newObjectViews(""), 0
	views.findBinding = func(all *refs.Claims, c *v1.PersistentVolumeClaim) (refs.Claim, string) {
		lookups++
		return all.Bind(c)
	}
	before := views.build(set)
	if lookups != n || before.Volumes[0].Object.(*v1.PersistentVolume).Status.Phase != v1.VolumeBound {
		t.Errorf("got %d lookups, first volume %+v; want %d lookups, one for each claim, and a bound volume", lookups, before.Volumes[0].Object, n)
	}
	o := set.ObjectsBySource["x"]
	o.ConfigMaps = map[types.NamespacedName]*v1.ConfigMap{{Namespace: "default", Name: "a"}: {ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}}
	after := views.build(&manifest.Set{ObjectsBySource: map[string]manifest.Objects{"x": o}})
	if !slices.Equal(before.Claims, after.Claims) || !slices.Equal(before.Volumes, after.Volumes) {
		t.Error("unchanged claims and volumes: got other pointers, want the same")
	}
	if before.ConfigMaps[0] == after.ConfigMaps[0] {
		t.Error("changed ConfigMap: got the same pointer, want another")
	}
}

// decodeText decodes manifests. It returns the first error.
func decodeText(text string, o decode.Options) (*manifest.File, error) {
	f := decode.File([]byte(text), o)
	for _, p := range f.Problems {
		if p.Severity == manifest.Error {
			return nil, errors.New(p.String())
		}
	}
	return f, nil
}
