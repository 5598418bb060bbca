package managed

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/server"
)

// singleVersion implements the interfaces with which managedfields converts objects between
// versions. There is nothing to convert, because podd reads, stores and serves only one version of
// each kind.
type singleVersion struct{ live server.Object }

var (
	_ runtime.ObjectConvertor = singleVersion{}
	_ runtime.ObjectDefaulter = singleVersion{}
	_ runtime.ObjectCreater   = singleVersion{}
)

// New implements runtime.ObjectCreater.
func (p singleVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	o := reflect.New(reflect.TypeOf(p.live).Elem()).Interface().(server.Object)
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

// Default implements runtime.ObjectDefaulter. It does nothing, because objects have
// defaults already.
func (singleVersion) Default(runtime.Object) {}

// Convert implements runtime.ObjectConvertor. It always fails, because there is
// only one version.
func (singleVersion) Convert(in, out, _ any) error {
	return runtime.NewNotRegisteredErrForType("podd", reflect.TypeOf(in))
}

// ConvertToVersion implements runtime.ObjectConvertor. It returns the object unchanged. If the
// requested version is not the version of the object, ConvertToVersion fails, so that managers of
// the requested version are ignored.
func (singleVersion) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if _, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()}); !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("podd", reflect.TypeOf(in), to)
	}
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (singleVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
