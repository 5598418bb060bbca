package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

// ofCluster returns a pod of a cluster with its resolved references.
func ofCluster(pod *v1.Pod, o manifest.Objects) (*manifest.Pod, *refs.Resolved) {
	pod.Namespace, pod.Name, pod.UID = "shop", "web", "u1"
	p := &manifest.Pod{
		Key: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "u1", HasFixedUID: true, Object: pod,
		Origin: manifest.Origin{Kind: manifest.KindAPI, Source: "cluster"}, Traits: manifest.KindTraits(manifest.KindAPI),
	}
	set := merge.Batches([]manifest.Batch{{Source: "cluster", Kind: manifest.KindAPI, Pods: []*manifest.Pod{p}, Objects: o, IsComplete: true}})
	return p, refs.ResolveSet(set, "salt", nil, nil).Refs[p.Key]
}

// TestTokenFile checks that the file of a token has the same mode and owner as in the kubelet.
func TestTokenFile(t *testing.T) {
	user, other, group, mode := int64(1000), int64(1001), int64(2000), int32(0o444)
	runs := func(id *int64) v1.Container {
		return v1.Container{SecurityContext: &v1.SecurityContext{RunAsUser: id}}
	}
	for _, test := range []struct {
		name  string
		spec  v1.PodSpec
		mode  uint32
		owner *int64
	}{
		{"user of the image", v1.PodSpec{Containers: []v1.Container{{}}}, 0o444, nil},
		{"user of the pod", v1.PodSpec{SecurityContext: &v1.PodSecurityContext{RunAsUser: &user}, Containers: []v1.Container{{}}}, 0o600, &user},
		{"same user in all containers", v1.PodSpec{InitContainers: []v1.Container{runs(&user)}, Containers: []v1.Container{runs(&user)}}, 0o600, &user},
		{"several users", v1.PodSpec{InitContainers: []v1.Container{runs(&other)}, Containers: []v1.Container{runs(&user)}}, 0o444, nil},
		{"one container without a user", v1.PodSpec{Containers: []v1.Container{runs(&user), {}}}, 0o444, nil},
		{"group of the pod", v1.PodSpec{SecurityContext: &v1.PodSecurityContext{FSGroup: &group}, Containers: []v1.Container{{}}}, 0o600, nil},
	} {
		source := &v1.ServiceAccountTokenProjection{Path: "a/token"}
		test.spec.Volumes = []v1.Volume{{Name: "api", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			DefaultMode: &mode, Sources: []v1.VolumeProjection{{ServiceAccountToken: source}}}}}}
		p, none := ofCluster(&v1.Pod{Spec: test.spec}, manifest.Objects{Cluster: &manifest.Cluster{}})
		v := &p.Object.Spec.Volumes[0]
		if _, err := (PodVolumes{Pod: p, Refs: none}).Files(v); err == nil || !strings.Contains(err.Error(), "has not been issued yet") {
			t.Errorf("%s: without a token: got error %v, want one with \"has not been issued yet\"", test.name, err)
		}
		ref := refs.TokenRef(p.Object, source)
		p, s := ofCluster(p.Object, manifest.Objects{Cluster: &manifest.Cluster{Tokens: map[types.NamespacedName]manifest.Token{ref.NamespacedName: {Text: []byte("t0ken")}}}})
		files, err := (PodVolumes{Pod: p, Refs: s}).Files(v)
		f := files["a/token"]
		if err != nil || string(f.Data) != "t0ken" || f.Mode != test.mode || (f.Owner == nil) != (test.owner == nil) || f.Owner != nil && *f.Owner != *test.owner {
			t.Errorf("%s: token file: got mode %o and owner %v (error %v), want mode %o and owner %v", test.name, f.Mode, f.Owner, err, test.mode, test.owner)
		}
	}
}

// TestVariables_Cluster checks that a container has the variables of Services unless it sets them
// itself, and that its own variables can refer to them. Errors about missing objects have the
// messages of Kubernetes.
func TestVariables_Cluster(t *testing.T) {
	yes := true
	from := func(name, key string, optional *bool) *v1.EnvVarSource {
		return &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}
	}
	db := *manifest.NewService(&v1.Service{Spec: v1.ServiceSpec{ClusterIP: "10.0.0.9", Ports: []v1.ServicePort{{Port: 5432}}}})
	lack := func(name string, absent bool, why string) (manifest.ObjectRef, manifest.MissingObject) {
		return manifest.ObjectRef{Kind: "ConfigMap", NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}, manifest.MissingObject{DoesNotExist: absent, Message: why}
	}
	have := types.NamespacedName{Namespace: "shop", Name: "have"}
	o := manifest.Objects{
		ConfigMaps: map[types.NamespacedName]*v1.ConfigMap{have: {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "have"}, Data: map[string]string{"a": "1"}}},
		Cluster: &manifest.Cluster{
			Services: map[string]*manifest.Services{"shop": {ByName: map[string]manifest.Service{"db": db}}},
			Missing:  map[manifest.ObjectRef]manifest.MissingObject{},
		},
	}
	for _, l := range []struct {
		name   string
		absent bool
		why    string
	}{{"none", true, `configmap "none" not found`}, {"secret", false, "configmaps is forbidden"}} {
		ref, lacks := lack(l.name, l.absent, l.why)
		o.Cluster.Missing[ref] = lacks
	}
	for _, test := range []struct {
		env  v1.EnvVar
		want string
	}{
		{v1.EnvVar{Name: "A", Value: "$(DB_SERVICE_HOST)"}, "A=10.0.0.9"},
		{v1.EnvVar{Name: "DB_SERVICE_HOST", Value: "mine"}, "DB_SERVICE_HOST=mine"},
		{v1.EnvVar{Name: "A", ValueFrom: from("have", "a", nil)}, "A=1"},
		{v1.EnvVar{Name: "A", ValueFrom: from("have", "b", &yes)}, ""},
		{v1.EnvVar{Name: "A", ValueFrom: from("have", "b", nil)}, "couldn't find key b in ConfigMap shop/have"},
		{v1.EnvVar{Name: "A", ValueFrom: from("none", "a", nil)}, `configmap "none" not found`},
		{v1.EnvVar{Name: "A", ValueFrom: from("none", "a", &yes)}, ""},
		{v1.EnvVar{Name: "A", ValueFrom: from("secret", "a", &yes)}, "configmaps is forbidden"},
	} {
		p, s := ofCluster(&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Env: []v1.EnvVar{test.env}}}}}, o)
		env, err := newEnvironment(&ContainerInput{Pod: p, Container: &p.Object.Spec.Containers[0], Refs: s})
		if err != nil {
			if !strings.HasSuffix(err.Error(), test.want) || test.want == "" {
				t.Errorf("variable %v: got error %v, want one that ends in %q", test.env, err, test.want)
			}
			continue
		}
		value, is := env.lookup(test.env.Name)
		got := ""
		if is {
			got = test.env.Name + "=" + value
		}
		if _, linked := env.lookup("DB_PORT_5432_TCP_ADDR"); got != test.want || !linked || len(env.vars) < 7 {
			t.Errorf("variable %v: got %q, want %q and the variables of the Services in %v", test.env, got, test.want, env.vars)
		}
	}
}

// TestPodCertificateFiles checks the files of a pod certificate. Each source of a volume has its own
// certificate.
func TestPodCertificateFiles(t *testing.T) {
	mode, user := int32(0o444), int64(1000)
	sources := []v1.VolumeProjection{
		{PodCertificate: &v1.PodCertificateProjection{SignerName: "example.com/a", KeyPath: "a/key.pem", CertificateChainPath: "a/chain.pem"}},
		{PodCertificate: &v1.PodCertificateProjection{SignerName: "example.com/b", CredentialBundlePath: "b.pem"}},
	}
	pod := &v1.Pod{Spec: v1.PodSpec{
		SecurityContext: &v1.PodSecurityContext{RunAsUser: &user}, Containers: []v1.Container{{}},
		Volumes: []v1.Volume{{Name: "own", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: &mode, Sources: sources}}}},
	}}
	issued := map[types.NamespacedName]*manifest.PodCertificate{}
	o := manifest.Objects{Cluster: &manifest.Cluster{PodCertificates: issued}}
	for i, want := range []map[string]string{nil, nil, {"a/key.pem": "key0", "a/chain.pem": "chain0", "b.pem": "key1chain1"}} {
		p, s := ofCluster(pod, o)
		files, err := (PodVolumes{Pod: p, Refs: s}).Files(&p.Object.Spec.Volumes[0])
		if want == nil && (!errors.Is(err, ErrMissing) || strings.Contains(err.Error(), "key0")) {
			t.Errorf("%d issued certificates: got error %v, want ErrMissing", i, err)
		}
		for name, text := range want {
			if f := files[name]; string(f.Data) != text || f.Mode != 0o600 || f.Owner == nil || *f.Owner != user {
				t.Errorf("file %s: got content %q, mode %o and owner %v, want content %q, mode 600 and owner 1000", name, f.Data, f.Mode, f.Owner, text)
			}
		}
		if len(files) != len(want) {
			t.Errorf("%d issued certificates: got %d files, want %d", i, len(files), len(want))
		}
		if i < len(sources) {
			ref := refs.PodCertificateRef(p.Object, "own", i)
			issued[ref.NamespacedName] = &manifest.PodCertificate{Key: fmt.Appendf(nil, "key%d", i), Chain: fmt.Appendf(nil, "chain%d", i)}
		}
	}
}

// TestFiles_SourceWithoutType checks that a source without a type is an error. An API server stores such
// a source if the feature gate of the type is disabled.
func TestFiles_SourceWithoutType(t *testing.T) {
	mode := int32(0o644)
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{}}, Volumes: []v1.Volume{{Name: "own", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []v1.VolumeProjection{{}}}}}}}}
	p, s := ofCluster(pod, manifest.Objects{Cluster: &manifest.Cluster{}})
	_, err := PodVolumes{Pod: p, Refs: s}.Files(&p.Object.Spec.Volumes[0])
	if want := "sources[0]: the source has no type that podd supports"; err == nil || errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
