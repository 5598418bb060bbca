package refs_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

func shopClaim(name, more string) string {
	return strings.Replace(claimText(name, more), "metadata: {", "metadata: {namespace: shop, ", 1)
}

const (
	small = manifesttest.SmallCapacity
	tiny  = ", capacity: {storage: 1Mi}"
	user  = manifesttest.PodWithClaim
)

var batch, claimText, volumeText = manifesttest.Batch, manifesttest.Claim, manifesttest.Volume

// TestResolve_Claims checks to which volume the claim "a" is bound ("directory" means a
// directory that podd manages), or the reason why the claim cannot be bound.
func TestResolve_Claims(t *testing.T) {
	for _, test := range []struct{ documents, want string }{
		{"", `PersistentVolumeClaim "a" (x:5) is not defined in x`},
		{claimText("b", ""), `is not defined in x (did you mean "b"?)`},
		{claimText("a", ""), "directory"},
		{claimText("a", ", storageClassName: fast"), "directory"},
		{claimText("a", ", storageClassName: ''"), "but none matches"},
		{claimText("a", ", selector: {matchLabels: {disk: x}}"), "but none matches"},
		{claimText("a", "") + volumeText("x", small), "x"},
		{claimText("a", ", storageClassName: ''") + volumeText("x", small), "x"},
		{claimText("a", ", volumeName: x") + volumeText("x", small), "x"},
		{claimText("a", ", volumeName: z") + volumeText("x", small), `refers to the PersistentVolume "z"`},
		{claimText("a", ", volumeName: x") + claimText("b", ", volumeName: x") + volumeText("x", small), `refers to the PersistentVolume "x", as does default/b`},
		{claimText("a", ", volumeName: x") + shopClaim("b", ", volumeName: x") + volumeText("x", small), `refers to the PersistentVolume "x", as does shop/b`},
		{claimText("a", ", volumeName: x") + shopClaim("b", ", volumeName: x") + volumeText("x", small+", claimRef: {name: a}"), "x"},
		{claimText("a", ", volumeName: x") + shopClaim("b", ", volumeName: x, volumeMode: Block") + volumeText("x", small), "x"},
		{claimText("a", ", volumeName: x") + volumeText("x", tiny), "its capacity is 1Mi, but the claim requests 1Gi"},
		{claimText("a", ", volumeName: x, storageClassName: fast") + volumeText("x", small), `its storageClassName is ""`},
		{claimText("a", ", volumeName: x, volumeMode: Block") + volumeText("x", small), "its volumeMode is Filesystem"},
		{strings.Replace(claimText("a", ", volumeName: x"), "ReadWriteOnce", "ReadOnlyMany", 1) + volumeText("x", small), "it does not allow the access mode ReadOnlyMany"},
		{claimText("a", "") + volumeText("x", tiny), "directory"},
		{claimText("a", ", storageClassName: fast") + volumeText("x", small), "directory"},
		{claimText("a", ", storageClassName: fast") + volumeText("x", small+", storageClassName: fast"), "x"},
		{claimText("a", "") + volumeText("x", small) + volumeText("z", small), `matches several PersistentVolumes ("x", "z")`},
		{claimText("a", ", selector: {matchLabels: {disk: z}}") + volumeText("x", small) + volumeText("z", small), "z"},
		{claimText("a", "") + claimText("b", "") + volumeText("x", small), `matches the PersistentVolume "x", as does default/b`},
		{claimText("a", "") + claimText("b", ", volumeName: x") + volumeText("x", small), "directory"},
		{claimText("a", "") + claimText("b", ", volumeName: z") + volumeText("x", small) + volumeText("z", small), "x"},
		{claimText("a", "") + volumeText("x", small+", claimRef: {namespace: default, name: a}") + volumeText("z", small), "x"},
		{claimText("a", "") + volumeText("x", tiny+", claimRef: {name: a}"), "its capacity is 1Mi"},
		{claimText("a", "") + volumeText("x", small+", claimRef: {namespace: shop, name: a}"), "directory"},
		{claimText("a", ", volumeName: x") + volumeText("x", small+", claimRef: {namespace: shop, name: a}"), "its claimRef is shop/a"},
		{claimText("a", "") + claimText("b", "") + volumeText("x", small) + volumeText("z", small+", claimRef: {name: b}"), "x"},
	} {
		b := batch(manifest.KindFile, "x", user+test.documents)
		if len(b.Problems) > 0 {
			t.Fatalf("%s\ngot problems %v, want none", test.documents, b.Problems)
		}
		set := merge.Batches([]manifest.Batch{b})
		s := refs.Resolve(b.Pods[0], set, "salt", nil)
		got := s.MissingMessage
		if c := s.Claim("a"); c != nil {
			got += "directory"
			if c.Volume != nil {
				got = s.MissingMessage + c.Volume.Name
			}
		}
		if !strings.Contains(got, test.want) || (len(test.want) < 10 && got != test.want) {
			t.Errorf("%s\ngot %q, want %q", test.documents, got, test.want)
		}
		if again := refs.Resolve(b.Pods[0], set, "salt", s); again != s {
			t.Errorf("%s: resolving again returned a new value, want the same pointer", test.documents)
		}
	}
}

// TestResolveSet_StoredClaims checks that a claim with data in a directory of podd keeps the directory
// even if a volume matches the claim. A claim that names a volume gets this volume.
func TestResolveSet_StoredClaims(t *testing.T) {
	for _, test := range []struct{ documents, want string }{
		{claimText("a", ""), "directory"},
		{claimText("a", "") + volumeText("x", small), "directory"},
		{claimText("a", "") + volumeText("x", small) + volumeText("z", small), "directory"},
		{claimText("a", "") + volumeText("x", small+", claimRef: {name: a}"), "directory"},
		{claimText("a", "") + volumeText("x", small+onNode1), "directory"},
		{claimText("a", ", storageClassName: ''"), "directory"},
		{claimText("a", ", volumeName: x") + volumeText("x", small), "x"},
		{claimText("a", ", volumeMode: Block") + volumeText("x", small), "podd provides directories only"},
		{shopClaim("a", ""), "is not defined in x in namespace default"},
	} {
		b := batch(manifest.KindFile, "x", user+test.documents)
		set := merge.Batches([]manifest.Batch{b})
		storedClaims := map[types.NamespacedName]bool{{Namespace: "default", Name: "a"}: true}
		s := refs.ResolveSet(set, "salt", storedClaims, nil).Refs[b.Pods[0].Key]
		got := s.MissingMessage
		if c := s.Claim("a"); c != nil && c.Volume != nil {
			got += c.Volume.Name
		} else if c != nil {
			got += "directory"
		}
		if !strings.Contains(got, test.want) || len(test.want) < 10 && got != test.want {
			t.Errorf("%s\ngot %q, want %q", test.documents, got, test.want)
		}
		if set.ObjectsBySource["x"].StoredClaims != nil {
			t.Error("ResolveSet changed the given set")
		}
	}
}

const (
	device  = "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {accessModes: [ReadWriteOnce], volumeMode: Block, local: {path: /dev/x}, capacity: {storage: 1Gi}}\n"
	userOfA = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: a}}], containers: [{name: main, image: \"i:1\", %s: [{name: v, %s: /v}]}]}\n"
	onNode1 = ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]}]}}"
)

// TestResolve_Devices checks that containers must use a claim according to its volumeMode.
func TestResolve_Devices(t *testing.T) {
	asDevice, asFiles := fmt.Sprintf(userOfA, "volumeDevices", "devicePath"), fmt.Sprintf(userOfA, "volumeMounts", "mountPath")
	block := claimText("a", ", volumeMode: Block")
	for _, tt := range []struct{ text, want string }{
		{asDevice + block + device, ""},
		{asFiles + claimText("a", ""), ""},
		{asFiles + block + device, "has volumeMode Block, but container main has it in volumeMounts"},
		{asDevice + claimText("a", ""), "has volumeMode Filesystem, but container main has it in volumeDevices"},
		{asDevice + block, "podd provides directories only; define a PersistentVolume"},
		{asDevice + block + volumeText("x", small), "podd provides directories only"},
		{asFiles + claimText("a", ", volumeName: x") + device, "its volumeMode is Block"},
	} {
		b := batch(manifest.KindFile, "x", tt.text)
		if len(b.Problems) > 0 {
			t.Fatalf("%s\ngot problems %v, want none", tt.text, b.Problems)
		}
		got := refs.Resolve(b.Pods[0], merge.Batches([]manifest.Batch{b}), "salt", nil).MissingMessage
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s\ngot missing message %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestResolve_OtherNodes checks that a claim that matches only a volume of another node gets neither
// this volume nor a directory.
func TestResolve_OtherNodes(t *testing.T) {
	otherNode := `cannot use the PersistentVolume "x": its nodeAffinity does not match the labels of this node`
	for _, tt := range []struct{ documents, host, want string }{
		{claimText("a", "") + volumeText("x", small+onNode1), "node1", ""},
		{claimText("a", "") + volumeText("x", small+onNode1), "node2", otherNode},
		{claimText("a", ", volumeName: x") + volumeText("x", small+onNode1), "node2", otherNode},
		{claimText("a", "") + volumeText("x", small+onNode1+", claimRef: {name: a}"), "node2", otherNode},
		{claimText("a", "") + volumeText("x", small+onNode1) + volumeText("z", small), "node2", ""},
		{claimText("a", "") + volumeText("x", tiny+onNode1), "node2", ""},
		{claimText("a", "") + volumeText("x", small+onNode1), "", ""}, // without labels, every volume matches
	} {
		o := decode.Options{Source: "x", Path: "x", NodeName: tt.host}
		if tt.host != "" {
			o.NodeLabels = map[string]string{"kubernetes.io/hostname": tt.host}
		}
		f := decode.File([]byte(user+tt.documents), o)
		if len(f.Problems) > 0 {
			t.Fatalf("%s\ngot problems %v, want none", tt.documents, f.Problems)
		}
		b := merge.Files("x", manifest.KindFile, f)
		b.IsComplete = true
		got := refs.Resolve(b.Pods[0], merge.Batches([]manifest.Batch{b}), "salt", nil).MissingMessage
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s\non %s: got %q, want %q", tt.documents, tt.host, got, tt.want)
		}
	}
}

// TestResolveSet_LaterSource checks that a claim of a file source waits until all earlier file
// sources were read, because they may define the same claim. A claim with data does not wait,
// and no claim waits for sources of other kinds.
func TestResolveSet_LaterSource(t *testing.T) {
	later := strings.Replace(user, "name: web", "name: other", 1) + claimText("a", "")
	wait := `PersistentVolumeClaim "a" (y:5) may also be defined in x, which takes precedence and has not been read completely yet`
	for _, test := range []struct {
		first    string // the kind of the first source
		complete bool
		second   string // the kind of the second source
		stored   bool
		want     string
	}{
		{manifest.KindFile, false, manifest.KindFile, false, wait},
		{manifest.KindFile, false, manifest.KindFile, true, ""},
		{manifest.KindFile, true, manifest.KindFile, false, ""},
		{manifest.KindURL, false, manifest.KindFile, false, ""},
		{manifest.KindFile, false, manifest.KindURL, false, ""},
	} {
		x, y := batch(test.first, "x", ""), batch(test.second, "y", later)
		x.IsComplete = test.complete
		set := merge.Batches([]manifest.Batch{x, y})
		storedClaims := map[types.NamespacedName]bool{{Namespace: "default", Name: "a"}: test.stored}
		if got := refs.ResolveSet(set, "salt", storedClaims, nil).Refs[y.Pods[0].Key].MissingMessage; got != test.want {
			t.Errorf("%+v: Missing: got %q, want %q", test, got, test.want)
		}
	}
}

// TestResolve_IncompleteSource checks that a claim waits until its source was read completely,
// because a file that was not read may contain a matching volume.
func TestResolve_IncompleteSource(t *testing.T) {
	b := batch(manifest.KindFile, "x", user+claimText("a", ""))
	b.IsComplete = false
	s := refs.Resolve(b.Pods[0], merge.Batches([]manifest.Batch{b}), "salt", nil)
	if !strings.Contains(s.MissingMessage, "may match a PersistentVolume in a file that has not been read yet") {
		t.Errorf("Missing: got %q, want the file that was not read yet", s.MissingMessage)
	}
}

func TestSingleClaims(t *testing.T) {
	once := strings.Replace(claimText("a", ""), "ReadWriteOnce", "ReadWriteOncePod", 1)
	api := batch(manifest.KindAPI, "cluster", claimText("a", "")+strings.Replace(claimText("b", ""), "ReadWriteOnce", "ReadWriteOncePod", 1))
	api.Objects.Cluster = &manifest.Cluster{}
	set := merge.Batches([]manifest.Batch{batch(manifest.KindFile, "x", once+claimText("b", "")), api})
	local, ofCluster := refs.ClaimRef{}, refs.ClaimRef{IsFromCluster: true}
	local.NamespacedName = types.NamespacedName{Namespace: "default", Name: "a"}
	ofCluster.NamespacedName = types.NamespacedName{Namespace: "default", Name: "b"}
	if got := refs.SinglePodClaims(set); len(got) != 2 || !got[local] || !got[ofCluster] {
		t.Errorf("SinglePodClaims: got %v, want %v and %v", got, local, ofCluster)
	}
}
