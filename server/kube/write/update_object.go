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

func (c *call) checkConfigMap(s storedObject, oldMap, newMap *v1.ConfigMap) error {
	switch {
	case !ptr.Deref(oldMap.Immutable, false):
		return nil
	case !ptr.Deref(newMap.Immutable, false):
		return c.newForbiddenError(s, "immutable", immutableMessage)
	case !equality.Semantic.DeepEqual(oldMap.Data, newMap.Data):
		return c.newForbiddenError(s, "data", immutableMessage)
	case !equality.Semantic.DeepEqual(oldMap.BinaryData, newMap.BinaryData):
		return c.newForbiddenError(s, "binaryData", immutableMessage)
	}
	return nil
}

func (c *call) checkSecret(s storedObject, oldSecret, newSecret *v1.Secret) error {
	switch {
	case oldSecret.Type != newSecret.Type:
		return c.newForbiddenError(s, "type", "field is immutable")
	case !ptr.Deref(oldSecret.Immutable, false):
		return nil
	case !ptr.Deref(newSecret.Immutable, false):
		return c.newForbiddenError(s, "immutable", immutableMessage)
	case !equality.Semantic.DeepEqual(oldSecret.Data, newSecret.Data):
		return c.newForbiddenError(s, "data", immutableMessage)
	}
	return nil
}

// checkClaim returns an error if the spec has changed, unless the only change is a greater
// requested size.
func (c *call) checkClaim(s storedObject, oldClaim, newClaim *v1.PersistentVolumeClaim) error {
	oldSize, newSize := oldClaim.Spec.Resources.Requests[v1.ResourceStorage], newClaim.Spec.Resources.Requests[v1.ResourceStorage]
	if newSize.Cmp(oldSize) < 0 {
		return c.newForbiddenError(s, "spec.resources.requests.storage", "field can not be less than previous value")
	}
	withOldSize := newClaim.DeepCopy()
	withOldSize.Spec.Resources.Requests = oldClaim.Spec.Resources.Requests
	if field := firstSpecDifference(oldClaim.Spec, withOldSize.Spec); field != "" {
		return c.newForbiddenError(s, field, "spec is immutable after creation except resources.requests for bound claims")
	}
	return nil
}

func (c *call) checkVolume(s storedObject, oldVolume, newVolume *v1.PersistentVolume) error {
	if field := firstSpecDifference(oldVolume.Spec.PersistentVolumeSource, newVolume.Spec.PersistentVolumeSource); field != "" {
		return c.newForbiddenError(s, field, "spec.persistentvolumesource is immutable after creation")
	}
	if oldVolume.Spec.NodeAffinity != nil && !equality.Semantic.DeepEqual(oldVolume.Spec.NodeAffinity, newVolume.Spec.NodeAffinity) {
		return c.newForbiddenError(s, "spec.nodeAffinity", "field is immutable")
	}
	return nil
}

func (c *call) checkCSIDriver(s storedObject, oldDriver, newDriver *storage.CSIDriver) error {
	switch {
	case *oldDriver.Spec.AttachRequired != *newDriver.Spec.AttachRequired:
		return c.newForbiddenError(s, "spec.attachRequired", "field is immutable")
	case !slices.Equal(oldDriver.Spec.VolumeLifecycleModes, newDriver.Spec.VolumeLifecycleModes):
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
func toJSONValue(v any) (value any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		panic("comparing Kubernetes objects: " + err.Error())
	}
	return value
}

func differingPath(a, b any, path string) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path
		}
		bothFields := maps.Clone(x)
		maps.Copy(bothFields, y)
		for _, key := range slices.Sorted(maps.Keys(bothFields)) {
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
