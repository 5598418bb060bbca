package refs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

const diskDriver = "disk.example"

// csiPod returns a pod with two CSI volumes: a PersistentVolume and an inline volume.
func csiPod() *manifest.Pod {
	p := clusterPod()
	p.Object.Spec = v1.PodSpec{NodeName: "n1", ServiceAccountName: "default", Volumes: []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: true}}},
		{Name: "own", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{
			Driver: "own.example", VolumeAttributes: map[string]string{"a": "1"}, NodePublishSecretRef: &v1.LocalObjectReference{Name: "key"},
		}}},
	}}
	return p
}

// csiObjects returns all objects that csiPod needs.
func csiObjects(p *manifest.Pod) manifest.Objects {
	o := clusterObjects(p)
	size, block := resource.MustParse("2Gi"), v1.PersistentVolumeBlock
	storageSecret := func(name string) *v1.SecretReference {
		return &v1.SecretReference{Namespace: "storage", Name: name}
	}
	pv := o.Volumes[types.NamespacedName{Name: "pv1"}]
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{
		Driver: diskDriver, VolumeHandle: "../h", FSType: "ext4", NodeStageSecretRef: storageSecret("key"), NodeExpandSecretRef: storageSecret("grow"),
	}
	pv.Spec.Capacity, pv.Spec.VolumeMode = v1.ResourceList{v1.ResourceStorage: size}, &block
	pv.Spec.AccessModes, pv.Spec.MountOptions = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany, v1.ReadWriteOnce}, []string{"noatime"}
	o.Secrets[shopName("key")] = &v1.Secret{ObjectMeta: meta("key"), Data: map[string][]byte{"of": []byte("shop")}}
	o.Secrets[types.NamespacedName{Namespace: "storage", Name: "key"}] = &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "key"}, Data: map[string][]byte{"of": []byte("s3cret")}}
	c := o.Cluster
	c.Missing[manifest.ObjectRef{Kind: "Secret", NamespacedName: types.NamespacedName{Namespace: "storage", Name: "grow"}}] = manifest.MissingObject{Message: "forbidden"}
	c.CSIDrivers["own.example"] = &storage.CSIDriverSpec{
		VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecycleEphemeral},
		TokenRequests:        []storage.TokenRequest{{Audience: "vault", ExpirationSeconds: new(int64(600))}, {}},
	}
	c.Tokens[shopName("u1/600/vault")] = manifest.Token{Text: []byte("v"), Expires: metav1.NewTime(time.Unix(1_700_000_000, 0))}
	c.AttachedVolumes = map[string]map[string]string{refs.AttachmentName(diskDriver, "../h", "n1"): {"devicePath": "/dev/x"}}
	return o
}

func TestResolved_CSI(t *testing.T) {
	p := csiPod()
	o := csiObjects(p)
	_, s := resolve(p, o, nil)
	if s.Blocker != (refs.Blocker{}) {
		t.Fatalf("got Blocker %+v, want none", s.Blocker)
	}
	want := &refs.CSIVolume{
		Driver: diskDriver, Handle: "../h", Volume: "pv1", FSType: "ext4", ReadOnly: true, Block: true,
		AccessMode: v1.ReadWriteMany, MountOptions: []string{"noatime"}, Capacity: 2 << 30,
		Published: map[string]string{"devicePath": "/dev/x"}, StageSecret: map[string][]byte{"of": []byte("s3cret")},
	}
	if diff := cmp.Diff(want, s.CSI(&p.Object.Spec.Volumes[0])); diff != "" {
		t.Errorf("persistent volume (-want +got):\n%s", diff)
	}
	want = &refs.CSIVolume{
		Driver: "own.example", AccessMode: v1.ReadWriteOnce, Attributes: map[string]string{"a": "1"},
		PublishSecret: map[string][]byte{"of": []byte("shop")}, DriverSpec: o.Cluster.CSIDrivers["own.example"],
		Tokens: `{"":{"token":"t0ken","expirationTimestamp":null},"vault":{"token":"v","expirationTimestamp":"2023-11-14T22:13:20Z"}}`,
	}
	if diff := cmp.Diff(want, s.CSI(&p.Object.Spec.Volumes[1])); diff != "" {
		t.Errorf("ephemeral volume (-want +got):\n%s", diff)
	}
	if s.Secret("key") != nil {
		t.Error("Secret for a driver: got the Secret in the Secrets of the pod, want it only in CSI")
	}
	if s.CSI(&v1.Volume{Name: "other"}) != nil || (*refs.Resolved)(nil).CSI(&v1.Volume{}) != nil {
		t.Error("CSI of a volume without driver: got a value, want nil")
	}
	var names []string
	for _, u := range refs.ListDriverRefs(&o, p.Object) {
		names = append(names, u.Object.Kind+" "+u.Object.String())
	}
	if len(names) != 6 || !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "storage/grow") }) {
		t.Errorf("ListDriverRefs: got %v, want the Secrets, tokens and the VolumeAttachment", names)
	}
}

// TestResolved_CSI_InTree checks the parameters of an in-tree volume of a pod, which a CSI driver
// provides, and the message about a volume that no driver can provide.
func TestResolved_CSI_InTree(t *testing.T) {
	const handle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"
	p := clusterPod()
	p.Object.Spec = v1.PodSpec{NodeName: "n1", Volumes: []v1.Volume{{Name: "disk", VolumeSource: v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "d", FSType: "ext4", ReadOnly: true}}}}}
	o := clusterObjects(p)
	_, s := resolve(p, o, nil)
	if want := "whether a volume is attached is being looked up"; s.MissingMessage != want || s.CSI(&p.Object.Spec.Volumes[0]) != nil {
		t.Errorf("not attached: got missing message %q, want %q, and no CSIVolume", s.MissingMessage, want)
	}
	o.Cluster.AttachedVolumes = map[string]map[string]string{refs.AttachmentName("pd.csi.storage.gke.io", handle, "n1"): nil}
	_, s = resolve(p, o, nil)
	want := &refs.CSIVolume{
		Driver: "pd.csi.storage.gke.io", Handle: handle, Volume: "pd.csi.storage.gke.io-d", FSType: "ext4", ReadOnly: true,
		AccessMode: v1.ReadOnlyMany, Attributes: map[string]string{"partition": ""},
	}
	if diff := cmp.Diff(want, s.CSI(&p.Object.Spec.Volumes[0])); diff != "" || s.MissingMessage != "" {
		t.Errorf("attached: got missing message %q, want none; volume (-want +got):\n%s", s.MissingMessage, diff)
	}
	blob := v1.VolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "u", Kind: new(v1.AzureSharedBlobDisk)}}
	p.Object.Spec.Volumes[0].VolumeSource = blob
	if _, s = resolve(p, o, nil); !strings.Contains(s.MissingMessage, `translating volume "disk" to a volume of a CSI driver: kind(Shared) is not supported`) {
		t.Errorf("azureDisk that is not managed: got %q, want the reason", s.MissingMessage)
	}
	p = csiPod()
	o = csiObjects(p)
	o.Volumes[types.NamespacedName{Name: "pv1"}].Spec.PersistentVolumeSource = v1.PersistentVolumeSource{AzureDisk: blob.AzureDisk}
	if _, s = resolve(p, o, nil); !strings.Contains(s.MissingMessage, `translating PersistentVolume "pv1" to a volume of a CSI driver: kind(Shared) is not supported`) {
		t.Errorf("PersistentVolume: got %q, want the reason", s.MissingMessage)
	}
}

// TestResolved_CSI_Wait checks for which objects a pod waits, and for which of its volumes CSI
// returns a CSIVolume while the pod waits.
func TestResolved_CSI_Wait(t *testing.T) {
	ref := manifest.ObjectRef{Kind: "VolumeAttachment", NamespacedName: types.NamespacedName{Name: refs.AttachmentName(diskDriver, "../h", "n1")}}
	pv := func(o *manifest.Objects) *v1.PersistentVolumeSpec {
		return &o.Volumes[types.NamespacedName{Name: "pv1"}].Spec
	}
	exceedLimit := func(o *manifest.Objects) {
		delete(o.Cluster.AttachedVolumes, ref.Name)
		o.Cluster.Missing[ref] = manifest.MissingObject{Message: "too many", ExceedsAttachLimit: true}
	}
	withPeriod := &storage.CSIDriverSpec{NodeAllocatableUpdatePeriodSeconds: new(int64(10)), VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}
	const limitMessage = "Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[data], unattached volumes=[data], failed to process volumes=[]: too many"
	for name, test := range map[string]struct {
		edit func(*manifest.Objects)
		want refs.Blocker
		csi  string // the volumes for which CSI returns a CSIVolume
	}{
		"not attached": {func(o *manifest.Objects) {
			delete(o.Cluster.AttachedVolumes, ref.Name)
			o.Cluster.Missing[ref] = manifest.MissingObject{Message: "not attached yet", WillExist: true}
		}, refs.Blocker{MissingMessage: "not attached yet", Volume: "data", EndsByItself: true}, "own"},
		"attaching fails": {func(o *manifest.Objects) {
			delete(o.Cluster.AttachedVolumes, ref.Name)
			o.Cluster.Missing[ref] = manifest.MissingObject{Message: "rpc error"}
		}, refs.Blocker{MissingMessage: "rpc error", Volume: "data"}, "own"},
		"limit exceeded": {func(o *manifest.Objects) {
			exceedLimit(o)
			o.Cluster.CSIDrivers[diskDriver] = withPeriod
		}, refs.Blocker{MissingMessage: "too many", Volume: "data", AttachLimitMessage: limitMessage}, "own"},
		"limit exceeded, another object missing": {func(o *manifest.Objects) {
			exceedLimit(o)
			o.Cluster.CSIDrivers[diskDriver] = withPeriod
			missing := manifest.ObjectRef{Kind: "Secret", NamespacedName: types.NamespacedName{Namespace: "storage", Name: "key"}}
			delete(o.Secrets, missing.NamespacedName)
			o.Cluster.Missing[missing] = manifest.MissingObject{Message: "no Secret"}
		}, refs.Blocker{MissingMessage: "fetching nodeStageSecretRef storage/key failed: no Secret", Volume: "data", AttachLimitMessage: limitMessage}, "own"},
		"limit exceeded, driver without updates": {exceedLimit, refs.Blocker{MissingMessage: "too many", Volume: "data"}, "own"},
		"limit exceeded, no CSIDriver": {func(o *manifest.Objects) {
			exceedLimit(o)
			delete(o.Cluster.CSIDrivers, diskDriver)
		}, refs.Blocker{MissingMessage: "too many", Volume: "data"}, "own"},
		"attaching fails, driver with updates": {func(o *manifest.Objects) {
			exceedLimit(o)
			o.Cluster.CSIDrivers[diskDriver] = withPeriod
			o.Cluster.Missing[ref] = manifest.MissingObject{Message: "rpc error"}
		}, refs.Blocker{MissingMessage: "rpc error", Volume: "data"}, "own"},
		"not requested": {func(o *manifest.Objects) { delete(o.Cluster.AttachedVolumes, ref.Name) },
			refs.Blocker{MissingMessage: "whether a volume is attached is being looked up", EndsByItself: true}, "own"},
		"needs no attachment": {func(o *manifest.Objects) {
			delete(o.Cluster.AttachedVolumes, ref.Name)
			o.Cluster.CSIDrivers[diskDriver] = &storage.CSIDriverSpec{AttachRequired: new(bool), VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}
		}, refs.Blocker{}, "data own"},
		"only ephemeral": {func(o *manifest.Objects) { o.Cluster.CSIDrivers[diskDriver] = o.Cluster.CSIDrivers["own.example"] },
			refs.Blocker{MissingMessage: `volume mode "Persistent" not supported by driver disk.example (only supports ["Ephemeral"])`, Volume: "data"}, "own"},
		"no driver": {func(o *manifest.Objects) { delete(o.Cluster.CSIDrivers, "own.example") },
			refs.Blocker{MissingMessage: `volume mode "Ephemeral" not supported by driver own.example (no CSIDriver object)`, Volume: "own"}, "data"},
		"no drivers yet": {func(o *manifest.Objects) { o.Cluster.CSIDrivers = nil },
			refs.Blocker{MissingMessage: "podd has not listed the CSIDrivers of the cluster yet", EndsByItself: true}, ""},
		"no secret": {func(o *manifest.Objects) {
			deleted := manifest.ObjectRef{Kind: "Secret", NamespacedName: types.NamespacedName{Namespace: "storage", Name: "key"}}
			delete(o.Secrets, deleted.NamespacedName)
			o.Cluster.Missing[deleted] = manifest.MissingObject{DoesNotExist: true, Message: `secret "key" not found`}
		}, refs.Blocker{MissingMessage: `fetching nodeStageSecretRef storage/key failed: secret "key" not found`, Volume: "data"}, "own"},
		"no token": {func(o *manifest.Objects) { delete(o.Cluster.Tokens, shopName("u1/600/vault")) },
			refs.Blocker{MissingMessage: "a token of the pod's service account is being looked up", EndsByItself: true}, "data"},
		"on another node": {func(o *manifest.Objects) {
			term := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}}}
			pv(o).NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}
		}, refs.Blocker{MissingMessage: `the nodeAffinity of PersistentVolume "pv1" does not match the labels of this node`, Volume: "data"}, "own"},
		"path as driver": {func(o *manifest.Objects) { pv(o).CSI.Driver = "../../etc" },
			refs.Blocker{MissingMessage: `PersistentVolume "pv1" refers to a CSI driver with the invalid name "../../etc"`, Volume: "data"}, "own"},
		"selector as Secret": {func(o *manifest.Objects) { pv(o).CSI.NodeStageSecretRef.Name = "a,metadata.name!=b" },
			refs.Blocker{MissingMessage: `PersistentVolume "pv1" refers to a Secret with the invalid name "storage/a,metadata.name!=b"`, Volume: "data"}, "own"},
		"long handle": {func(o *manifest.Objects) { pv(o).CSI.VolumeHandle = strings.Repeat("h", 4097) },
			refs.Blocker{MissingMessage: `PersistentVolume "pv1" has a volumeHandle of 4097 bytes (limit 4096)`, Volume: "data"}, "own"},
		"no handle": {func(o *manifest.Objects) { pv(o).CSI.VolumeHandle = "" },
			refs.Blocker{MissingMessage: `PersistentVolume "pv1" has no valid volumeHandle`, Volume: "data"}, "own"},
	} {
		p := csiPod()
		o := csiObjects(p)
		test.edit(&o)
		_, s := resolve(p, o, nil)
		if s.Blocker != test.want {
			t.Errorf("%s: got Blocker %+v, want %+v", name, s.Blocker, test.want)
		}
		var volumes []string
		for i := range p.Object.Spec.Volumes {
			if v := &p.Object.Spec.Volumes[i]; s.CSI(v) != nil {
				volumes = append(volumes, v.Name)
			}
		}
		if got := strings.Join(volumes, " "); got != test.csi {
			t.Errorf("%s: volumes with a CSI value: got %q, want %q", name, got, test.csi)
		}
	}
}

// TestResolved_CSI_Changes checks that an unchanged CSIVolume keeps its pointer, and that a change
// of a driver's parameters does not change the version of the pod.
func TestResolved_CSI_Changes(t *testing.T) {
	p := csiPod()
	o := csiObjects(p)
	b, was := resolve(p, o, nil)
	again := func(edit func(*manifest.Objects)) (*refs.ResolvedSet, *refs.Resolved) {
		next, c := o, *o.Cluster
		next.Secrets, c.Tokens = maps.Clone(o.Secrets), maps.Clone(c.Tokens)
		next.Cluster = &c
		edit(&next)
		return resolve(p, next, b)
	}
	if _, s := again(func(o *manifest.Objects) { o.Cluster.Tokens[shopName("u9/600/")] = manifest.Token{} }); s != was {
		t.Error("after a change of other objects: got another Resolved, want the same")
	}
	next, s := again(func(o *manifest.Objects) {
		o.Secrets[shopName("key")] = &v1.Secret{ObjectMeta: meta("key"), Data: map[string][]byte{"of": []byte("other")}}
	})
	data, own := &p.Object.Spec.Volumes[0], &p.Object.Spec.Volumes[1]
	switch {
	case s == was || s.EqualForStart(was) || s.MountDigest == was.MountDigest || string(s.CSI(own).PublishSecret["of"]) != "other":
		t.Errorf("CSI after a change of a Secret: got %+v, want the new data", s.CSI(own))
	case s.CSI(data) != was.CSI(data):
		t.Error("unchanged CSI value: got a new pointer, want the same")
	case next.Set.Pods[p.Key] != b.Set.Pods[p.Key] || s.FilesDigest != was.FilesDigest || s.EnvDigest != was.EnvDigest:
		t.Error("version of the pod after a change of a driver's Secret: got another, want the same")
	case strings.Contains(s.MountDigest, "other"):
		t.Error("MountDigest contains the text of the Secret, want only a digest")
	}
}

// TestResolved_CSI_Republish checks that FilesDigest changes if a driver must be called again. This
// is the case if a volume must be expanded, and if a driver that requires republishing needs new
// tokens or Secrets.
func TestResolved_CSI_Republish(t *testing.T) {
	p := csiPod()
	p.Object.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = false
	files := func(edit func(*manifest.Objects)) (string, *refs.CSIVolume) {
		o := csiObjects(p)
		edit(&o)
		_, s := resolve(p, o, nil)
		return s.FilesDigest, s.CSI(&p.Object.Spec.Volumes[0])
	}
	token := func(text string, again bool) func(*manifest.Objects) {
		return func(o *manifest.Objects) {
			o.Cluster.Tokens[shopName("u1/600/vault")] = manifest.Token{Text: []byte(text)}
			o.Cluster.CSIDrivers["own.example"].RequiresRepublish = &again
		}
	}
	has := func(size string) func(*manifest.Objects) {
		return func(o *manifest.Objects) {
			o.Claims[shopName("data")].Status.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
		}
	}
	none, _ := files(func(*manifest.Objects) {})
	if a, _ := files(token("a", false)); a != none || none == "" {
		t.Errorf("without requiresRepublish: got FilesDigest %q before and %q after the new token; want no change", none, a)
	}
	a, _ := files(token("a", true))
	if b, _ := files(token("b", true)); a == b || a == none {
		t.Errorf("FilesDigest after a new token: got %q, want one that differs from %q", b, a)
	}
	if grown, csi := files(has("2Gi")); grown != none || csi.MustExpand {
		t.Errorf("claim with the requested size: got FilesDigest %q, want the digest %q and no expansion", grown, none)
	}
	allocated := func(step v1.ClaimResourceStatus) func(*manifest.Objects) {
		return func(o *manifest.Objects) {
			has("1Gi")(o)
			s := &o.Claims[shopName("data")].Status
			s.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1536Mi")}
			s.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: step}
		}
	}
	if waits, csi := files(allocated(v1.PersistentVolumeClaimControllerResizeInProgress)); waits != none || csi.MustExpand {
		t.Errorf("during the controller's resize: got FilesDigest %q, want the digest %q and no expansion", waits, none)
	}
	if _, csi := files(allocated(v1.PersistentVolumeClaimNodeResizePending)); !csi.MustExpand || csi.Capacity != 1536<<20 {
		t.Errorf("CSI of a claim with a pending node resize: got %+v, want an expansion", csi)
	}
	if grows, csi := files(has("1Gi")); grows == none || !csi.MustExpand || csi.Capacity != 2<<30 {
		t.Errorf("claim smaller than its volume: got FilesDigest %q and %+v, want an expansion", grows, csi)
	}
}

// Documents for volumes of CSI drivers in manifests.
const (
	localDriver = "---\napiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: disk.example}\nspec: {attachRequired: false, fsGroupPolicy: File}\n"
	localSecret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: storage}\nstringData: {of: s3cret}\n"
	localVolume = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  mountOptions: [noatime]
  csi: {driver: disk.example, volumeHandle: "h:1", fsType: ext4, readOnly: true, volumeAttributes: {pool: fast}, nodeStageSecretRef: {namespace: storage, name: key}}
`
)

// TestResolve_CSI checks the parameters of the CSI volumes of a pod in a manifest, and for which
// objects the pod waits.
func TestResolve_CSI(t *testing.T) {
	inline := func(documents string) string {
		return strings.Replace(documents, "persistentVolumeClaim: {claimName: a}", "csi: {driver: disk.example, nodePublishSecretRef: {name: own}}", 1)
	}
	claimed := user + claimText("a", "") + localVolume
	for name, test := range map[string]struct{ documents, want string }{
		"complete":           {claimed + localDriver + localSecret, ""},
		"no driver":          {claimed + localSecret, `CSIDriver "disk.example" of PersistentVolume "disk" (x:5) is not defined in x`},
		"no secret":          {claimed + localDriver, `Secret "storage/key" of PersistentVolume "disk" (x:5) is not defined in x`},
		"secret elsewhere":   {claimed + localDriver + strings.Replace(localSecret, "namespace: storage", "namespace: shop", 1), `Secret "storage/key" of PersistentVolume "disk" (x:5) is not defined in x in namespace storage (there is one in namespace shop)`},
		"must be attached":   {claimed + strings.Replace(localDriver, "attachRequired: false, ", "", 1) + localSecret, `PersistentVolume "disk" (x:5) must be attached to this node by a controller, because the CSIDriver "disk.example" has attachRequired: true, but podd runs no controllers`},
		"only inline":        {claimed + strings.Replace(localDriver, "spec: {", "spec: {volumeLifecycleModes: [Ephemeral], ", 1) + localSecret, `PersistentVolume "disk" (x:5) requires the mode Persistent, but the CSIDriver "disk.example" supports only ["Ephemeral"] (volumeLifecycleModes)`},
		"inline":             {inline(user) + strings.Replace(localDriver, "spec: {", "spec: {volumeLifecycleModes: [Ephemeral], ", 1) + strings.Replace(localSecret, "key, namespace: storage", "own", 1), ""},
		"inline, no driver":  {inline(user) + strings.Replace(localSecret, "key, namespace: storage", "own", 1), `CSIDriver "disk.example" (x:5) is not defined in x`},
		"inline, no secret":  {inline(user) + strings.Replace(localDriver, "spec: {", "spec: {volumeLifecycleModes: [Ephemeral], ", 1), `Secret "own" (x:5) is not defined in x`},
		"inline, only bound": {inline(user) + localDriver + strings.Replace(localSecret, "key, namespace: storage", "own", 1), `CSI volume "v" (x:5) requires the mode Ephemeral, but the CSIDriver "disk.example" supports only ["Persistent"] (volumeLifecycleModes)`},
	} {
		b := batch(manifest.KindFile, "x", test.documents)
		set, p := merge.Batches([]manifest.Batch{b}), b.Pods[0]
		s := refs.Resolve(p, set, "salt", nil)
		if s.MissingMessage != test.want {
			t.Errorf("%s: got %q, want %q", name, s.MissingMessage, test.want)
		}
		if has := s.CSI(&p.Object.Spec.Volumes[0]) != nil; has != (test.want == "") {
			t.Errorf("%s: CSI returns parameters: got %t, want %t", name, has, test.want == "")
		}
		problems := refs.CheckMissing([]*manifest.Pod{p}, set.ObjectsBySource, manifest.Warning)
		if want := 1; test.want != "" && len(problems) != want || test.want == "" && len(problems) > 0 {
			t.Errorf("%s: CheckMissing: got problems %v, want one if Resolve reports a missing object, otherwise none", name, problems)
		}
	}
	b := batch(manifest.KindFile, "x", claimed+localDriver+localSecret)
	set, p := merge.Batches([]manifest.Batch{b}), b.Pods[0]
	s := refs.Resolve(p, set, "salt", nil)
	driver := set.ObjectsBySource["x"].CSIDrivers[types.NamespacedName{Name: diskDriver}].Spec
	want := &refs.CSIVolume{
		Driver: diskDriver, Handle: "h:1", Volume: "disk", FSType: "ext4", ReadOnly: true, AccessMode: v1.ReadWriteOnce,
		MountOptions: []string{"noatime"}, Attributes: map[string]string{"pool": "fast"}, Capacity: 1 << 30,
		StageSecret: map[string][]byte{"of": []byte("s3cret")}, DriverSpec: &driver,
	}
	if diff := cmp.Diff(want, s.CSI(&p.Object.Spec.Volumes[0])); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if s.Secret("key") != nil {
		t.Error("Secret for a driver: got the Secret in the Secrets of the pod, want it only in CSI")
	}
	if again := refs.Resolve(p, set, "salt", s); again != s {
		t.Error("unchanged objects: got another Resolved, want the same")
	}
}

// TestCSINames checks that names are equal to the names that the controllers of Kubernetes use.
func TestCSINames(t *testing.T) {
	if got := refs.UniqueVolumeName("d.example", "vol-1"); got != "kubernetes.io/csi/d.example^vol-1" {
		t.Errorf("UniqueVolumeName: got %s, want the name of Kubernetes", got)
	}
	want := "csi-2403980985f4a2f14fca5ef1efa9ccc39b35027f8eeead24a448d2659ba4bd58"
	if got := refs.AttachmentName("d.example", "vol-1", "n1"); got != want {
		t.Errorf("AttachmentName: got %s, want %s", got, want)
	}
}
