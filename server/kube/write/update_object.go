package write

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

const immutableMessage = "field is immutable when `immutable` is set"

func (c *call) checkConfigMap(s storedObject, was, is *v1.ConfigMap) error {
	switch {
	case !ptr.Deref(was.Immutable, false):
		return nil
	case !ptr.Deref(is.Immutable, false):
		return c.newForbiddenError(s, "immutable", immutableMessage)
	case !equality.Semantic.DeepEqual(was.Data, is.Data):
		return c.newForbiddenError(s, "data", immutableMessage)
	case !equality.Semantic.DeepEqual(was.BinaryData, is.BinaryData):
		return c.newForbiddenError(s, "binaryData", immutableMessage)
	}
	return nil
}

func (c *call) checkSecret(s storedObject, was, is *v1.Secret) error {
	switch {
	case was.Type != is.Type:
		return c.newForbiddenError(s, "type", "field is immutable")
	case !ptr.Deref(was.Immutable, false):
		return nil
	case !ptr.Deref(is.Immutable, false):
		return c.newForbiddenError(s, "immutable", immutableMessage)
	case !equality.Semantic.DeepEqual(was.Data, is.Data):
		return c.newForbiddenError(s, "data", immutableMessage)
	}
	return nil
}

// checkClaim returns an error if the spec has changed, unless the only change is a greater
// requested size.
func (c *call) checkClaim(s storedObject, was, is *v1.PersistentVolumeClaim) error {
	before, after := was.Spec.Resources.Requests[v1.ResourceStorage], is.Spec.Resources.Requests[v1.ResourceStorage]
	if after.Cmp(before) < 0 {
		return c.newForbiddenError(s, "spec.resources.requests.storage", "field can not be less than previous value")
	}
	same := is.DeepCopy()
	same.Spec.Resources.Requests = was.Spec.Resources.Requests
	if field := firstSpecDifference(was.Spec, same.Spec); field != "" {
		return c.newForbiddenError(s, field, "spec is immutable after creation except resources.requests for bound claims")
	}
	return nil
}

func (c *call) checkVolume(s storedObject, was, is *v1.PersistentVolume) error {
	if field := firstSpecDifference(was.Spec.PersistentVolumeSource, is.Spec.PersistentVolumeSource); field != "" {
		return c.newForbiddenError(s, field, "spec.persistentvolumesource is immutable after creation")
	}
	if was.Spec.NodeAffinity != nil && !equality.Semantic.DeepEqual(was.Spec.NodeAffinity, is.Spec.NodeAffinity) {
		return c.newForbiddenError(s, "spec.nodeAffinity", "field is immutable")
	}
	return nil
}

func (c *call) checkCSIDriver(s storedObject, was, is *storage.CSIDriver) error {
	switch {
	case *was.Spec.AttachRequired != *is.Spec.AttachRequired:
		return c.newForbiddenError(s, "spec.attachRequired", "field is immutable")
	case !slices.Equal(was.Spec.VolumeLifecycleModes, is.Spec.VolumeLifecycleModes):
		return c.newForbiddenError(s, "spec.volumeLifecycleModes", "field is immutable")
	}
	return nil
}

// firstSpecDifference returns the path of the first field, in alphabetical order, in which the specs
// a and b differ, or "" if they are equal. The result contains no values, because they may be
// secret.
func firstSpecDifference(a, b any) string {
	if equality.Semantic.DeepEqual(a, b) {
		return ""
	}
	return differingPath(toJSONValue(a), toJSONValue(b), "spec")
}

// toJSONValue converts v to the values that JSON decodes to: maps, slices and scalars.
func toJSONValue(v any) (t any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		panic("comparing Kubernetes objects: " + err.Error())
	}
	return t
}

func differingPath(a, b any, path string) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path
		}
		all := maps.Clone(x)
		maps.Copy(all, y)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !equality.Semantic.DeepEqual(x[key], y[key]) {
				return differingPath(x[key], y[key], path+"."+key)
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return path
		}
		for n := range x {
			if !equality.Semantic.DeepEqual(x[n], y[n]) {
				return differingPath(x[n], y[n], fmt.Sprintf("%s[%d]", path, n))
			}
		}
	}
	return path
}
