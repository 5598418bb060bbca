package manifest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestHashFields checks that every field which a hash includes or excludes is a field of a
// pod's spec.
func TestHashFields(t *testing.T) {
	fields := map[string]bool{}
	for f := range reflect.TypeFor[v1.PodSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = true
	}
	for _, name := range slices.Concat(sandboxFields, mutableSpecFields) {
		if !fields[name] {
			t.Errorf("spec.%s is not a field of a pod", name)
		}
	}
}
