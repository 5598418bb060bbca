package refs_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

const apiSource = "https://cluster"

// clusterPod returns a pod of an API server with references of all kinds.
func clusterPod() *manifest.Pod {
	class, yes := "gvisor", true
	ref := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Spec: v1.PodSpec{
			RuntimeClassName: &class, ServiceAccountName: "default", ImagePullSecrets: []v1.LocalObjectReference{ref("pull")},
			Volumes: []v1.Volume{
				{Name: "conf", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: ref("conf"), Items: []v1.KeyToPath{{Key: "a", Path: "a"}}}}},
				{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				{Name: "tmp", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}},
				{Name: "api", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
					{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
					{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: ref("kube-root-ca.crt")}},
					{Secret: &v1.SecretProjection{LocalObjectReference: ref("maybe"), Optional: &yes}},
				}}}},
			},
			Containers: []v1.Container{{Name: "app", EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: ref("env")}}}}},
		},
	}
	return &manifest.Pod{
		Key: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "u1", HasFixedUID: true, Object: pod,
		Origin: manifest.Origin{Kind: manifest.KindAPI, Source: apiSource}, Traits: manifest.KindTraits(manifest.KindAPI),
	}
}

func shopName(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

// clusterObjects returns all objects that clusterPod references.
func clusterObjects(p *manifest.Pod) manifest.Objects {
	claim := func(name, volume string) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
			Spec:       v1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
		}
	}
	volume := func(name, claim string) *v1.PersistentVolume {
		return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{UID: types.UID(claim)}}}
	}
	own := claim("web-tmp", "pv2")
	yes := true
	own.OwnerReferences = []metav1.OwnerReference{{UID: p.UID, Controller: &yes}}
	return manifest.Objects{
		ConfigMaps: map[types.NamespacedName]*v1.ConfigMap{
			shopName("conf"): {ObjectMeta: meta("conf"), Data: map[string]string{"a": "1"}}, shopName("kube-root-ca.crt"): {ObjectMeta: meta("kube-root-ca.crt")},
		},
		Secrets: map[types.NamespacedName]*v1.Secret{shopName("env"): {ObjectMeta: meta("env")}, shopName("pull"): {ObjectMeta: meta("pull")}},
		Claims:  map[types.NamespacedName]*v1.PersistentVolumeClaim{shopName("data"): claim("data", "pv1"), shopName("web-tmp"): own},
		Volumes: map[types.NamespacedName]*v1.PersistentVolume{{Name: "pv1"}: volume("pv1", "data"), {Name: "pv2"}: volume("pv2", "web-tmp")},
		Cluster: &manifest.Cluster{
			Missing:         map[manifest.ObjectRef]manifest.MissingObject{{Kind: "Secret", NamespacedName: shopName("maybe")}: {DoesNotExist: true, Message: `secret "maybe" not found`}},
			Tokens:          map[types.NamespacedName]manifest.Token{shopName("u1/3600/"): {Text: []byte("t0ken")}},
			RuntimeHandlers: map[string]string{"gvisor": "runsc"},
			Services:        map[string]*manifest.Services{},
			CSIDrivers:      map[string]*storage.CSIDriverSpec{},
		},
	}
}

// resolve resolves the references of a pod of a cluster.
func resolve(p *manifest.Pod, o manifest.Objects, before *refs.ResolvedSet) (*refs.ResolvedSet, *refs.Resolved) {
	set := merge.Batches([]manifest.Batch{{Source: apiSource, Kind: manifest.KindAPI, Pods: []*manifest.Pod{p}, Objects: o, IsComplete: true, Node: &manifest.Node{Labels: map[string]string{"zone": "a"}}}})
	b := refs.ResolveSet(set, "salt", nil, before)
	return b, b.Refs[p.Key]
}

func TestResolveSet_ClusterWait(t *testing.T) {
	without := func(kind, name, why string, absent bool) func(*manifest.Objects) {
		return func(o *manifest.Objects) {
			delete(o.ConfigMaps, shopName(name))
			delete(o.Secrets, shopName(name))
			delete(o.Claims, shopName(name))
			delete(o.Cluster.Tokens, shopName(name))
			delete(o.Cluster.RuntimeHandlers, name)
			ref := manifest.ObjectRef{Kind: kind, NamespacedName: shopName(name)}
			if kind == "RuntimeClass" {
				ref.Namespace = ""
			}
			delete(o.Cluster.Missing, ref)
			if why != "" {
				o.Cluster.Missing[ref] = manifest.MissingObject{DoesNotExist: absent, Message: why}
			}
		}
	}
	for name, test := range map[string]struct {
		edit func(*manifest.Objects)
		want refs.Blocker
	}{
		"all objects":         {func(*manifest.Objects) {}, refs.Blocker{}},
		"no response":         {func(o *manifest.Objects) { *o = manifest.Objects{} }, refs.Blocker{MissingMessage: "podd has not listed the Services of the cluster yet", EndsByItself: true}},
		"no Services yet":     {func(o *manifest.Objects) { o.Cluster.Services = nil }, refs.Blocker{MissingMessage: "podd has not listed the Services of the cluster yet", EndsByItself: true}},
		"requested":           {without("ConfigMap", "conf", "", false), refs.Blocker{MissingMessage: "ConfigMap shop/conf is being looked up", EndsByItself: true}},
		"variables requested": {without("Secret", "env", "", false), refs.Blocker{MissingMessage: "Secret shop/env is being looked up", EndsByItself: true}},
		"optional requested":  {without("Secret", "maybe", "", false), refs.Blocker{MissingMessage: "Secret shop/maybe is being looked up", EndsByItself: true}},
		"token requested":     {without("TokenRequest", "u1/3600/", "", false), refs.Blocker{MissingMessage: "a token of the pod's service account is being looked up", EndsByItself: true}},
		"absent":              {without("ConfigMap", "conf", `configmap "conf" not found`, true), refs.Blocker{MissingMessage: `configmap "conf" not found`, Volume: "conf"}},
		"forbidden":           {without("Secret", "maybe", "secrets is forbidden", false), refs.Blocker{MissingMessage: "secrets is forbidden", Volume: "api"}},
		"no token":            {without("TokenRequest", "u1/3600/", "failed to fetch token", false), refs.Blocker{MissingMessage: "failed to fetch token", Volume: "api"}},
		"no class":            {without("RuntimeClass", "gvisor", `RuntimeClass "gvisor" not found`, true), refs.Blocker{MissingMessage: `RuntimeClass "gvisor" not found`}},
		// Only the container waits for its variables. An image is pulled without the Secret.
		"Secret of the variables absent": {without("Secret", "env", `secret "env" not found`, true), refs.Blocker{}},
		"pull absent":                    {without("Secret", "pull", `secret "pull" not found`, true), refs.Blocker{}},
		"no key": {func(o *manifest.Objects) { o.ConfigMaps[shopName("conf")].Data = nil },
			refs.Blocker{MissingMessage: "references non-existent config key: a", Volume: "conf"}},
		"no claim": {without("PersistentVolumeClaim", "data", `persistentvolumeclaim "data" not found`, true),
			refs.Blocker{MissingMessage: `persistentvolumeclaim "data" not found`, Volume: "data"}},
		"claim pending": {func(o *manifest.Objects) {
			o.Claims[shopName("data")].Status.Phase, o.Claims[shopName("data")].Spec.VolumeName = v1.ClaimPending, ""
		}, refs.Blocker{MissingMessage: `PVC shop/data has non-bound phase ("Pending") or empty pvc.Spec.VolumeName ("")`, Volume: "data"}},
		"volume missing": {func(o *manifest.Objects) { delete(o.Volumes, types.NamespacedName{Name: "pv1"}) },
			refs.Blocker{MissingMessage: `persistentvolume "pv1" not found`, Volume: "data"}},
		"volume of another claim": {func(o *manifest.Objects) { o.Volumes[types.NamespacedName{Name: "pv1"}].Spec.ClaimRef.UID = "other" },
			refs.Blocker{MissingMessage: `the PersistentVolume "pv1" is bound to another claim than PVC shop/data`, Volume: "data"}},
		"volume of another node": {func(o *manifest.Objects) {
			term := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}}}
			o.Volumes[types.NamespacedName{Name: "pv1"}].Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}
		},
			refs.Blocker{MissingMessage: `the nodeAffinity of PersistentVolume "pv1" does not match the labels of this node`, Volume: "data"}},
		"ephemeral claim of another pod": {func(o *manifest.Objects) { o.Claims[shopName("web-tmp")].OwnerReferences = nil },
			refs.Blocker{MissingMessage: "PVC shop/web-tmp was not created for pod shop/web (pod is not owner)", Volume: "tmp"}},
	} {
		p := clusterPod()
		o := clusterObjects(p)
		test.edit(&o)
		if _, s := resolve(p, o, nil); s.Blocker != test.want {
			t.Errorf("%s: got Blocker %+v, want %+v", name, s.Blocker, test.want)
		}
	}
}

// TestResolveSet_ClusterIgnoresFiles checks that a pod of a cluster does not use objects of
// file sources.
func TestResolveSet_ClusterIgnoresFiles(t *testing.T) {
	p := clusterPod()
	files := manifest.Batch{Source: "/a", Kind: manifest.KindFile, Objects: clusterObjects(p), IsComplete: true}
	files.Objects.Cluster = nil
	own := manifest.Batch{Source: apiSource, Kind: manifest.KindAPI, Pods: []*manifest.Pod{p}, IsComplete: true}
	s := refs.ResolveSet(merge.Batches([]manifest.Batch{files, own}), "salt", nil, nil).Refs[p.Key]
	if len(s.ConfigMaps)+len(s.Secrets)+len(s.Claims) > 0 || !s.EndsByItself {
		t.Errorf("got %+v, want no objects, and EndsByItself true because the objects of the cluster are still being read", s)
	}
}

// TestResolveSet_ClusterUnchanged checks that other objects of the cluster do not change the
// Resolved of a pod, and that changed Services do not restart anything.
func TestResolveSet_ClusterUnchanged(t *testing.T) {
	p := clusterPod()
	o := clusterObjects(p)
	b, was := resolve(p, o, nil)
	if h := b.Set.Pods[p.Key].ServerRuntimeHandler; h == nil || *h != "runsc" {
		t.Fatalf("handler: got %v, want the handler of the RuntimeClass", h)
	}
	if got := b.Set.Pods[p.Key].Traits; got != p.Traits {
		t.Errorf("pod with a handler: got traits %+v, want %+v", got, p.Traits)
	}
	again := func(edit func(*manifest.Cluster)) (*refs.ResolvedSet, *refs.Resolved) {
		next, c := o, *o.Cluster
		c.Tokens = maps.Clone(c.Tokens)
		edit(&c)
		next.Cluster = &c
		return resolve(p, next, b)
	}
	same, s := again(func(c *manifest.Cluster) {
		c.Services = map[string]*manifest.Services{"other": {}}
		c.Tokens[shopName("u2/3600/")] = manifest.Token{Text: []byte("x")}
	})
	if s != was || same.Set.Pods[p.Key] != b.Set.Pods[p.Key] {
		t.Error("after a change of other objects: got another Resolved or version, want the same")
	}
	_, s = again(func(c *manifest.Cluster) { c.Services = map[string]*manifest.Services{"shop": {}} })
	if s == was || !s.EqualForStart(was) {
		t.Error("after a change of Services: want the new Services and unchanged digests")
	}
	_, s = again(func(c *manifest.Cluster) { c.Tokens[shopName("u1/3600/")] = manifest.Token{Text: []byte("n3w")} })
	if s.FilesDigest == was.FilesDigest || s.EnvDigest != was.EnvDigest || s.EqualForStart(was) {
		t.Error("after a new token: got the same FilesDigest, another EnvDigest, or EqualForStart true; want only another FilesDigest, and false")
	}
	if text := fmt.Sprint(*s); strings.Contains(s.FilesDigest+s.EnvDigest+s.MissingMessage, "n3w") {
		t.Error("got the token in a digest or in MissingMessage, want only digests: " + text)
	}
}

func TestServiceVariables(t *testing.T) {
	of := func(ip string, ports ...v1.ServicePort) manifest.Service {
		return *manifest.NewService(&v1.Service{Spec: v1.ServiceSpec{ClusterIP: ip, Ports: ports}})
	}
	api := of("10.0.0.1", v1.ServicePort{Name: "https", Port: 443, Protocol: v1.ProtocolTCP})
	p := clusterPod()
	o := clusterObjects(p)
	o.Cluster.Services = map[string]*manifest.Services{
		"default": {ByName: map[string]manifest.Service{"kubernetes": api, "other": of("10.0.0.9", v1.ServicePort{Port: 1})}},
		"shop": {ByName: map[string]manifest.Service{
			"my-db": of("fd00::1", v1.ServicePort{Name: "sql", Port: 5432}, v1.ServicePort{Name: "dns-udp", Port: 53, Protocol: v1.ProtocolUDP}),
		}},
	}
	_, s := resolve(p, o, nil)
	var got []string
	for _, v := range s.ServiceVariables() {
		got = append(got, v.Name+"="+v.Value)
	}
	want := strings.Fields(`
		KUBERNETES_PORT=tcp://10.0.0.1:443 KUBERNETES_PORT_443_TCP=tcp://10.0.0.1:443 KUBERNETES_PORT_443_TCP_ADDR=10.0.0.1
		KUBERNETES_PORT_443_TCP_PORT=443 KUBERNETES_PORT_443_TCP_PROTO=tcp KUBERNETES_SERVICE_HOST=10.0.0.1
		KUBERNETES_SERVICE_PORT=443 KUBERNETES_SERVICE_PORT_HTTPS=443
		MY_DB_PORT=tcp://[fd00::1]:5432 MY_DB_PORT_5432_TCP=tcp://[fd00::1]:5432 MY_DB_PORT_5432_TCP_ADDR=fd00::1
		MY_DB_PORT_5432_TCP_PORT=5432 MY_DB_PORT_5432_TCP_PROTO=tcp MY_DB_PORT_53_UDP=udp://[fd00::1]:53
		MY_DB_PORT_53_UDP_ADDR=fd00::1 MY_DB_PORT_53_UDP_PORT=53 MY_DB_PORT_53_UDP_PROTO=udp MY_DB_SERVICE_HOST=fd00::1
		MY_DB_SERVICE_PORT=5432 MY_DB_SERVICE_PORT_DNS_UDP=53 MY_DB_SERVICE_PORT_SQL=5432`)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	no := false
	p.Object.Spec.EnableServiceLinks = &no
	_, s = resolve(p, o, nil)
	if vars := s.ServiceVariables(); len(vars) != 8 || slices.ContainsFunc(vars, func(v v1.EnvVar) bool { return !strings.HasPrefix(v.Name, "KUBERNETES_") }) {
		t.Errorf("without enableServiceLinks: got %v, want only the variables of the API server", vars)
	}
	if manifest.NewService(&v1.Service{Spec: v1.ServiceSpec{ClusterIP: "None", Ports: []v1.ServicePort{{Port: 1}}}}) != nil {
		t.Error("NewService without an address: got a Service, want nil")
	}
}
