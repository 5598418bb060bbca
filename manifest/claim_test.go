package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

func claimText(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}%s}\n", name, more)
}

func shopClaim(name, more string) string {
	return strings.Replace(claimText(name, more), "metadata: {", "metadata: {namespace: shop, ", 1)
}

func volumeText(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s, labels: {disk: %s}}\nspec: {accessModes: [ReadWriteOnce, ReadWriteMany], hostPath: {path: /srv}%s}\n", name, name, more)
}

const (
	small = ", capacity: {storage: 1Gi}"
	tiny  = ", capacity: {storage: 1Mi}"
	user  = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: a}}], containers: [{name: main, image: \"i:1\"}]}\n"
)

// TestBindClaims: what the claim "a" gets, "directory" for one of podd's, or what
// is missing.
func TestBindClaims(t *testing.T) {
	for _, test := range []struct{ documents, want string }{
		{"", `PersistentVolumeClaim "a" (x:5) is not in x`},
		{claimText("b", ""), `is not in x (did you mean "b"?)`},
		{claimText("a", ""), "directory"},
		{claimText("a", ", storageClassName: fast"), "directory"},
		{claimText("a", ", storageClassName: ''"), "none beside it fits"},
		{claimText("a", ", selector: {matchLabels: {disk: x}}"), "none beside it fits"},
		{claimText("a", "") + volumeText("x", small), "x"},
		{claimText("a", ", storageClassName: ''") + volumeText("x", small), "x"},
		{claimText("a", ", volumeName: x") + volumeText("x", small), "x"},
		{claimText("a", ", volumeName: z") + volumeText("x", small), `names the PersistentVolume "z"`},
		{claimText("a", ", volumeName: x") + claimText("b", ", volumeName: x") + volumeText("x", small), `names the PersistentVolume "x", as default/b does`},
		{claimText("a", ", volumeName: x") + shopClaim("b", ", volumeName: x") + volumeText("x", small), `names the PersistentVolume "x", as shop/b does`},
		{claimText("a", ", volumeName: x") + shopClaim("b", ", volumeName: x") + volumeText("x", small+", claimRef: {name: a}"), "x"},
		{claimText("a", ", volumeName: x") + shopClaim("b", ", volumeName: x, volumeMode: Block") + volumeText("x", small), "x"},
		{claimText("a", ", volumeName: x") + volumeText("x", tiny), "it has 1Mi, and the claim requests 1Gi"},
		{claimText("a", ", volumeName: x, storageClassName: fast") + volumeText("x", small), `its storageClassName is ""`},
		{claimText("a", ", volumeName: x, volumeMode: Block") + volumeText("x", small), "its volumeMode is Filesystem"},
		{strings.Replace(claimText("a", ", volumeName: x"), "ReadWriteOnce", "ReadOnlyMany", 1) + volumeText("x", small), "it has no accessMode ReadOnlyMany"},
		{claimText("a", "") + volumeText("x", tiny), "directory"},
		{claimText("a", ", storageClassName: fast") + volumeText("x", small), "directory"},
		{claimText("a", ", storageClassName: fast") + volumeText("x", small+", storageClassName: fast"), "x"},
		{claimText("a", "") + volumeText("x", small) + volumeText("z", small), `fits the PersistentVolumes "x", "z"`},
		{claimText("a", ", selector: {matchLabels: {disk: z}}") + volumeText("x", small) + volumeText("z", small), "z"},
		{claimText("a", "") + claimText("b", "") + volumeText("x", small), `fits the PersistentVolume "x" as well as default/b does`},
		{claimText("a", "") + claimText("b", ", volumeName: x") + volumeText("x", small), "directory"},
		{claimText("a", "") + claimText("b", ", volumeName: z") + volumeText("x", small) + volumeText("z", small), "x"},
		{claimText("a", "") + volumeText("x", small+", claimRef: {namespace: default, name: a}") + volumeText("z", small), "x"},
		{claimText("a", "") + volumeText("x", tiny+", claimRef: {name: a}"), "it has 1Mi"},
		{claimText("a", "") + volumeText("x", small+", claimRef: {namespace: shop, name: a}"), "directory"},
		{claimText("a", ", volumeName: x") + volumeText("x", small+", claimRef: {namespace: shop, name: a}"), "its claimRef is shop/a"},
		{claimText("a", "") + claimText("b", "") + volumeText("x", small) + volumeText("z", small+", claimRef: {name: b}"), "x"},
	} {
		b := batch(manifest.KindFile, "x", user+test.documents)
		if len(b.Problems) > 0 {
			t.Fatalf("%s\n%v", test.documents, b.Problems)
		}
		set := manifest.Merge([]manifest.Batch{b})
		s := manifest.SupplyOf(b.Pods[0], set, "salt", nil)
		got := s.Missing
		if c := s.Claim("a"); c != nil {
			got += "directory"
			if c.Volume != nil {
				got = s.Missing + c.Volume.Name
			}
		}
		if !strings.Contains(got, test.want) || (len(test.want) < 10 && got != test.want) {
			t.Errorf("%s\ngot %q, want %q", test.documents, got, test.want)
		}
		if again := manifest.SupplyOf(b.Pods[0], set, "salt", s); again != s {
			t.Errorf("%s: the same again is new", test.documents)
		}
	}
}

// TestBindKept: a claim whose data is in a directory of podd's stays there,
// whatever volumes come, unless it names one.
func TestBindKept(t *testing.T) {
	for _, test := range []struct{ documents, want string }{
		{claimText("a", ""), "directory"},
		{claimText("a", "") + volumeText("x", small), "directory"},
		{claimText("a", "") + volumeText("x", small) + volumeText("z", small), "directory"},
		{claimText("a", "") + volumeText("x", small+", claimRef: {name: a}"), "directory"},
		{claimText("a", "") + volumeText("x", small+onNode1), "directory"},
		{claimText("a", ", storageClassName: ''"), "directory"},
		{claimText("a", ", volumeName: x") + volumeText("x", small), "x"},
		{claimText("a", ", volumeMode: Block") + volumeText("x", small), "podd makes directories, no devices"},
		{shopClaim("a", ""), "is not in x in namespace default"},
	} {
		b := batch(manifest.KindFile, "x", user+test.documents)
		set := manifest.Merge([]manifest.Batch{b})
		kept := map[types.NamespacedName]bool{{Namespace: "default", Name: "a"}: true}
		s := manifest.Bind(set, "salt", kept, nil).Supplies[b.Pods[0].Key]
		got := s.Missing
		if c := s.Claim("a"); c != nil && c.Volume != nil {
			got += c.Volume.Name
		} else if c != nil {
			got += "directory"
		}
		if !strings.Contains(got, test.want) || len(test.want) < 10 && got != test.want {
			t.Errorf("%s\ngot %q, want %q", test.documents, got, test.want)
		}
		if set.Objects["x"].Kept != nil {
			t.Error("the set was written to")
		}
	}
}

const (
	device  = "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {accessModes: [ReadWriteOnce], volumeMode: Block, local: {path: /dev/x}, capacity: {storage: 1Gi}}\n"
	taker   = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: a}}], containers: [{name: main, image: \"i:1\", %s: [{name: v, %s: /v}]}]}\n"
	onNode1 = ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]}]}}"
)

// TestBindDevices: a claim is a device or a file system, and used as what it is.
func TestBindDevices(t *testing.T) {
	asDevice, asFiles := fmt.Sprintf(taker, "volumeDevices", "devicePath"), fmt.Sprintf(taker, "volumeMounts", "mountPath")
	block := claimText("a", ", volumeMode: Block")
	for _, tt := range []struct{ text, want string }{
		{asDevice + block + device, ""},
		{asFiles + claimText("a", ""), ""},
		{asFiles + block + device, "has the volumeMode Block, and container main has it among its volumeMounts"},
		{asDevice + claimText("a", ""), "has the volumeMode Filesystem, and container main has it among its volumeDevices"},
		{asDevice + block, "podd makes directories, no devices; write a PersistentVolume"},
		{asDevice + block + volumeText("x", small), "podd makes directories, no devices"},
		{asFiles + claimText("a", ", volumeName: x") + device, "its volumeMode is Block"},
	} {
		b := batch(manifest.KindFile, "x", tt.text)
		if len(b.Problems) > 0 {
			t.Fatalf("%s\n%v", tt.text, b.Problems)
		}
		got := manifest.SupplyOf(b.Pods[0], manifest.Merge([]manifest.Batch{b}), "salt", nil).Missing
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s\ngot %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestVolumesOfOtherNodes: what is on another node is no claim's here, and no
// directory takes its place.
func TestVolumesOfOtherNodes(t *testing.T) {
	away := `cannot have the PersistentVolume "x": its nodeAffinity is for nodes with other labels`
	for _, tt := range []struct{ documents, host, want string }{
		{claimText("a", "") + volumeText("x", small+onNode1), "node1", ""},
		{claimText("a", "") + volumeText("x", small+onNode1), "node2", away},
		{claimText("a", ", volumeName: x") + volumeText("x", small+onNode1), "node2", away},
		{claimText("a", "") + volumeText("x", small+onNode1+", claimRef: {name: a}"), "node2", away},
		{claimText("a", "") + volumeText("x", small+onNode1) + volumeText("z", small), "node2", ""},
		{claimText("a", "") + volumeText("x", tiny+onNode1), "node2", ""},
		{claimText("a", "") + volumeText("x", small+onNode1), "", ""}, // nobody knows the labels
	} {
		o := manifest.Options{Source: "x", Path: "x", Node: tt.host}
		if tt.host != "" {
			o.Labels = map[string]string{"kubernetes.io/hostname": tt.host}
		}
		f := manifest.Decode([]byte(user+tt.documents), o)
		if len(f.Problems) > 0 {
			t.Fatalf("%s\n%v", tt.documents, f.Problems)
		}
		b := manifest.Collect("x", manifest.KindFile, f)
		b.Complete = true
		got := manifest.SupplyOf(b.Pods[0], manifest.Merge([]manifest.Batch{b}), "salt", nil).Missing
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s\non %s: got %q, want %q", tt.documents, tt.host, got, tt.want)
		}
	}
}

// TestClaimOfTwoSources: its data is for the pods of one.
func TestClaimOfTwoSources(t *testing.T) {
	text := user + claimText("a", "")
	x, y := batch(manifest.KindFile, "x", text), batch(manifest.KindFile, "y", strings.Replace(text, "name: web", "name: other", 1))
	set := manifest.Merge([]manifest.Batch{x, y})
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].String(), `PersistentVolumeClaim default/a is already at x:7, whose pods have its data`) {
		t.Errorf("%v", set.Problems)
	}
	for i, want := range []string{"", "(the one in x serves pods from there alone)"} {
		p := []manifest.Batch{x, y}[i].Pods[0]
		if got := manifest.SupplyOf(p, set, "salt", nil).Missing; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s lacks %q, want %q", p.Key, got, want)
		}
	}
	if len(y.Objects.Claims) != 1 {
		t.Error("the batch was written to")
	}
	for _, kind := range []string{manifest.KindURL, manifest.KindAPI} {
		z := batch(kind, "z", strings.Replace(text, "name: web", "name: other", 1))
		if set := manifest.Merge([]manifest.Batch{x, z}); len(set.Problems) > 0 || len(set.Objects["z"].Claims) != 1 {
			t.Errorf("one of kind %s is its own: %v", kind, set.Problems)
		}
	}
}

// TestClaimsOfLaterSources: a file source that was not read whole yet may have
// the claims of those after it, but one that has its data waits for none; a source
// of another kind has its own.
func TestClaimsOfLaterSources(t *testing.T) {
	later := strings.Replace(user, "name: web", "name: other", 1) + claimText("a", "")
	wait := `PersistentVolumeClaim "a" (y:5) may be at x, too, which comes first and was not read whole yet`
	for _, test := range []struct {
		kind     string // of the first source
		complete bool
		then     string // the kind of the second
		kept     bool
		want     string
	}{
		{manifest.KindFile, false, manifest.KindFile, false, wait},
		{manifest.KindFile, false, manifest.KindFile, true, ""},
		{manifest.KindFile, true, manifest.KindFile, false, ""},
		{manifest.KindURL, false, manifest.KindFile, false, ""},
		{manifest.KindFile, false, manifest.KindURL, false, ""},
	} {
		x, y := batch(test.kind, "x", ""), batch(test.then, "y", later)
		x.Complete = test.complete
		set := manifest.Merge([]manifest.Batch{x, y})
		kept := map[types.NamespacedName]bool{{Namespace: "default", Name: "a"}: test.kept}
		if got := manifest.Bind(set, "salt", kept, nil).Supplies[y.Pods[0].Key].Missing; got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

// TestGroupsOfAClaim: two pods that give its files to two groups are told of.
func TestGroupsOfAClaim(t *testing.T) {
	pod := func(name, group string) string {
		return strings.Replace(strings.Replace(user, "name: web", "name: "+name, 1), "spec: {", "spec: {securityContext: {fsGroup: "+group+"}, ", 1)
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{pod("one", "1") + pod("two", "2") + claimText("a", ""), true},
		{pod("one", "1") + pod("two", "1") + claimText("a", ""), false},
		{pod("one", "1") + user + claimText("a", ""), false},
		{pod("one", "1") + strings.Replace(pod("two", "2"), "claimName: a", "claimName: a, readOnly: true", 1) + claimText("a", ""), false},
		{pod("one", "1") + pod("two", "2") + claimText("a", "") + volumeText("x", small), false}, // a hostPath is left as it is
	} {
		set := manifest.Merge([]manifest.Batch{batch(manifest.KindFile, "x", tt.text)})
		got := ""
		for _, p := range set.Problems {
			got += p.String()
		}
		if (got != "") != tt.want || tt.want && !strings.Contains(got, `warning: spec.securityContext.fsGroup: gives the files of the claim "a" to group 2, and default/one`) {
			t.Errorf("%s\n%s", tt.text, got)
		}
	}
}

// TestClaimWaitsForTheWholeSource: a volume may be in a file not read yet.
func TestClaimWaitsForTheWholeSource(t *testing.T) {
	b := batch(manifest.KindFile, "x", user+claimText("a", ""))
	b.Complete = false
	s := manifest.SupplyOf(b.Pods[0], manifest.Merge([]manifest.Batch{b}), "salt", nil)
	if !strings.Contains(s.Missing, "may have a PersistentVolume in a file that is not read yet") {
		t.Errorf("missing: %q", s.Missing)
	}
}

func TestSingleClaims(t *testing.T) {
	once := strings.Replace(claimText("a", ""), "ReadWriteOnce", "ReadWriteOncePod", 1)
	api := batch(manifest.KindAPI, "cluster", claimText("a", "")+strings.Replace(claimText("b", ""), "ReadWriteOnce", "ReadWriteOncePod", 1))
	api.Objects.Cluster = &manifest.Cluster{}
	set := manifest.Merge([]manifest.Batch{batch(manifest.KindFile, "x", once+claimText("b", "")), api})
	local, clusters := manifest.ClaimRef{}, manifest.ClaimRef{Cluster: true}
	local.NamespacedName = types.NamespacedName{Namespace: "default", Name: "a"}
	clusters.NamespacedName = types.NamespacedName{Namespace: "default", Name: "b"}
	if got := manifest.SingleClaims(set); len(got) != 2 || !got[local] || !got[clusters] {
		t.Errorf("%v", got)
	}
}

// TestClaimDocuments: what is wrong with a claim or volume is told by its field.
func TestClaimDocuments(t *testing.T) {
	for text, want := range map[string]string{
		claimText("a", ", dataSource: {kind: PersistentVolumeClaim, name: b}"):                    "spec.dataSource",
		claimText("a", ", volumeMode: Tape"):                                                      "spec.volumeMode",
		strings.Replace(claimText("a", ""), "[ReadWriteOnce]", "[]", 1):                           "spec.accessModes",
		strings.Replace(claimText("a", ""), "[ReadWriteOnce]", "[ReadWriteOnce, Often]", 1):       "spec.accessModes[1]",
		strings.Replace(claimText("a", ""), "ReadWriteOnce", "ReadWriteOncePod, ReadOnlyMany", 1): "spec.accessModes",
		strings.Replace(claimText("a", ""), "1Gi", "0", 1):                                        "spec.resources.requests[storage]",
		volumeText("x", ""): "spec.capacity[storage]",
		strings.Replace(volumeText("x", small), "/srv", "srv", 1):                                                                             "spec.hostPath.path",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "local: {path: /a/../b}", 1):                                        "spec.local.path",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "csi: {driver: d, volumeHandle: h}", 1):                             "spec.csi",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}, ", "", 1):                                                            "spec",
		volumeText("x", small+", local: {path: /a}"):                                                                                          "spec.local",
		volumeText("x", small+", nfs: {server: s, path: /a}"):                                                                                 "spec.nfs",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: a}", 1):                                     "spec.nfs.path",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: /a}, mountOptions: [soft, 'ro,bg']", 1):     "spec.mountOptions[1]",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: /a}, mountOptions: [soft, 'ro, bg =1']", 1): "spec.mountOptions[1]",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: /a}, mountOptions: ['']", 1):                "spec.mountOptions[0]",
		volumeText("x", small+", mountOptions: [noexec]"):                                                                                     "spec.mountOptions",
		volumeText("x", small+", volumeAttributesClassName: gold"):                                                                            "spec.volumeAttributesClassName",
		volumeText("x", small+", persistentVolumeReclaimPolicy: Keep"):                                                                        "spec.persistentVolumeReclaimPolicy",
		claimText("a", ", volumeAttributesClassName: gold"):                                                                                   "spec.volumeAttributesClassName",
		strings.Replace(volumeText("x", small), "metadata: {", "metadata: {namespace: a, ", 1):                                                "metadata.namespace",
		volumeText("x", small+", volumeMode: Block"):                                                                                          "spec.volumeMode",
		volumeText("x", small+", nodeAffinity: {}"):                                                                                           "spec.nodeAffinity.required",
		volumeText("x", small+", nodeAffinity: {required: {nodeSelectorTerms: []}}"):                                                          "spec.nodeAffinity.required.nodeSelectorTerms",
		volumeText("x", small+", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In}]}]}}"):           "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values",
	} {
		f := manifest.Decode([]byte(text), manifest.Options{})
		if len(f.Problems) != 1 || f.Problems[0].Field != want || !f.Refused() {
			t.Errorf("%s\nwant one problem about %s: %v", text, want, f.Problems)
		}
	}
}

// TestVolumeWarnings: what is taken and not done is told.
func TestVolumeWarnings(t *testing.T) {
	for more, want := range map[string]string{
		", persistentVolumeReclaimPolicy: Retain":                                                             "",
		", persistentVolumeReclaimPolicy: Delete":                                                             "spec.persistentVolumeReclaimPolicy",
		", persistentVolumeReclaimPolicy: Recycle":                                                            "spec.persistentVolumeReclaimPolicy",
		", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}": "",
	} {
		f := manifest.Decode([]byte(volumeText("x", small+more)), manifest.Options{})
		got := ""
		for _, p := range f.Problems {
			got += p.Field
		}
		if got != want || f.Refused() {
			t.Errorf("%s: want one warning about %q: %v", more, want, f.Problems)
		}
	}
}
