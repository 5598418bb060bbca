package managed

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"podd/server"
	"podd/server/kube/openapi"
)

// kinds returns the kinds that podd writes.
func kinds() []openapi.Resource {
	var all []openapi.Resource
	for _, o := range objects() {
		gvk := o.GetObjectKind().GroupVersionKind()
		all = append(all, openapi.Resource{Kind: gvk, Object: o, Plural: gvk.Kind, Namespaced: true, Verbs: []string{"get", "patch"}})
	}
	return all
}

func objects() []server.Object {
	all := []server.Object{&v1.Pod{}, &v1.ConfigMap{}, &v1.Secret{}, &v1.PersistentVolumeClaim{}, &v1.PersistentVolume{}}
	bundle := &certificates.ClusterTrustBundle{}
	bundle.SetGroupVersionKind(certificates.SchemeGroupVersion.WithKind("ClusterTrustBundle"))
	for n, kind := range []string{"Pod", "ConfigMap", "Secret", "PersistentVolumeClaim", "PersistentVolume"} {
		all[n].GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind(kind))
	}
	driver := &storage.CSIDriver{}
	driver.SetGroupVersionKind(storage.SchemeGroupVersion.WithKind("CSIDriver"))
	return append(all, bundle, driver)
}

// TestNewConverter checks that lists and maps have the same merge rules as in Kubernetes' own
// clients.
func TestNewConverter(t *testing.T) {
	ours := newConverter(kinds())
	theirs := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for _, o := range objects() {
		w := walk{t: t, seen: map[string]bool{}}
		got, gotType := typeOf(t, ours, o)
		want, wantType := typeOf(t, theirs, o)
		w.got, w.want = got, want
		w.compare(o.GetObjectKind().GroupVersionKind().Kind, gotType, wantType)
		if len(w.seen) < 5 {
			t.Errorf("%T: got %d compared types, want at least 5", o, len(w.seen))
		}
	}
}

func typeOf(t *testing.T, c managedfields.TypeConverter, o runtime.Object) (*schema.Schema, schema.TypeRef) {
	t.Helper()
	v, err := c.ObjectToTyped(o)
	if err != nil {
		t.Fatal(err)
	}
	return v.Schema(), v.TypeRef()
}

// walk compares two types recursively.
type walk struct {
	t         *testing.T
	got, want *schema.Schema
	seen      map[string]bool
}

func (w *walk) compare(path string, got, want schema.TypeRef) {
	if want.NamedType != nil {
		if w.seen[*want.NamedType] {
			return
		}
		w.seen[*want.NamedType] = true
		if *want.NamedType == untyped || *want.NamedType == meta+"FieldsV1" {
			return
		}
	}
	g, gotOK := w.got.Resolve(got)
	x, wantOK := w.want.Resolve(want)
	if !gotOK || !wantOK {
		w.t.Errorf("%s: podd has the type: %v, Kubernetes has it: %v", path, gotOK, wantOK)
		return
	}
	switch {
	case g.Scalar != nil && x.Scalar != nil:
		if *x.Scalar != schema.Scalar("untyped") && *g.Scalar != *x.Scalar && *g.Scalar != schema.Scalar("untyped") {
			w.t.Errorf("%s: got a %s, want a %s", path, *g.Scalar, *x.Scalar)
		}
	case g.List != nil && x.List != nil:
		if diff := cmp.Diff(x.List.Keys, g.List.Keys); diff != "" || g.List.ElementRelationship != x.List.ElementRelationship {
			w.t.Errorf("%s: got a list of type %q with keys %v, want type %q with keys %v", path, g.List.ElementRelationship, g.List.Keys, x.List.ElementRelationship, x.List.Keys)
		}
		w.compare(path+"[]", g.List.ElementType, x.List.ElementType)
	case g.Map != nil && x.Map != nil:
		w.maps(path, g.Map, x.Map)
	default:
		w.t.Errorf("%s: got %+v, want %+v", path, g, x)
	}
}

func (w *walk) maps(path string, got, want *schema.Map) {
	if isSeparable(got) != isSeparable(want) {
		w.t.Errorf("%s: got a map of type %q, want %q", path, got.ElementRelationship, want.ElementRelationship)
	}
	var names []string
	for _, f := range want.Fields {
		names = append(names, f.Name)
		g, ok := got.FindField(f.Name)
		if !ok {
			w.t.Errorf("%s.%s is in the schema of Kubernetes and not in that of podd", path, f.Name)
			continue
		}
		if keyed := g.Default != nil && f.Default != nil; keyed {
			if diff := cmp.Diff(f.Default, g.Default); diff != "" && diff != cmp.Diff(map[string]any{}, "") {
				w.t.Errorf("%s.%s: got the default %v, want %v", path, f.Name, g.Default, f.Default)
			}
		}
		w.compare(path+"."+f.Name, g.Type, f.Type)
	}
	for _, f := range got.Fields {
		if !slices.Contains(names, f.Name) {
			w.t.Errorf("%s.%s is in the schema of podd and not in that of Kubernetes", path, f.Name)
		}
	}
	if len(want.Fields) == 0 {
		w.compare(path+"{}", got.ElementType, want.ElementType)
	}
}

// isSeparable reports whether the fields of a map are merged separately. This is the
// default.
func isSeparable(m *schema.Map) bool {
	return m.ElementRelationship == "" || m.ElementRelationship == schema.Separable
}

const (
	untyped = "__untyped_atomic_"
	meta    = "io.k8s.apimachinery.pkg.apis.meta.v1."
)
