package managed

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/server"
)

// plain is what managedfields asks for of kinds of several versions: podd's have
// one, which is what is read, kept and shown.
type plain struct{ live server.Object }

var (
	_ runtime.ObjectConvertor = plain{}
	_ runtime.ObjectDefaulter = plain{}
	_ runtime.ObjectCreater   = plain{}
)

// New implements runtime.ObjectCreater: an object that is not there yet.
func (p plain) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	o := reflect.New(reflect.TypeOf(p.live).Elem()).Interface().(server.Object)
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

// Default implements runtime.ObjectDefaulter: whoever keeps an object completes it.
func (plain) Default(runtime.Object) {}

// Convert implements runtime.ObjectConvertor; nothing is converted into another.
func (plain) Convert(in, out, _ any) error {
	return runtime.NewNotRegisteredErrForType("podd", reflect.TypeOf(in))
}

// ConvertToVersion implements runtime.ObjectConvertor. A manager of another version
// is none.
func (plain) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if _, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()}); !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("podd", reflect.TypeOf(in), to)
	}
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (plain) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
