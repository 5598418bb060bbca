package validate

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ConfigMap validates a ConfigMap, except its metadata.
func ConfigMap(c *v1.ConfigMap) field.ErrorList {
	return validateData(c.Data, c.BinaryData, "binaryData")
}

// Secret validates a Secret, except its metadata. The caller must have merged stringData into data.
func Secret(s *v1.Secret) field.ErrorList {
	return append(validateData(nil, s.Data, "data"), validateSecretType(s)...)
}

// validateData validates the keys and the size of a ConfigMap's or Secret's data. binaryField is
// the name of the field that contains the map binary: "binaryData" or "data". Errors contain no
// value.
func validateData(data map[string]string, binary map[string][]byte, binaryField string) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(data)) {
		at := field.NewPath("data").Key(key)
		errs = append(errs, invalidErrors(at, key, validation.IsConfigMapKey(key))...)
		if _, isInBoth := binary[key]; isInBoth {
			errs = append(errs, field.Forbidden(at, "the key is also in "+binaryField+"; remove one of them"))
		}
		size += len(data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(binary)) {
		errs = append(errs, invalidErrors(field.NewPath(binaryField).Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(binary[key])
	}
	if size > v1.MaxSecretSize {
		errs = append(errs, field.Forbidden(field.NewPath("data"), fmt.Sprintf("is too large: %d bytes (limit %d)", size, v1.MaxSecretSize)))
	}
	return errs
}
