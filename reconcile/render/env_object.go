package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// addEnvFrom adds the variables of envFrom: one for each key, sorted within an object. A
// later object replaces variables of an earlier one. binaryData of a ConfigMap is ignored.
func (e *environment) addEnvFrom(in *ContainerInput) error {
	for i := range in.Container.EnvFrom {
		from := &in.Container.EnvFrom[i]
		kind, name, optional := envFromObject(from)
		data, found := textData(in, kind, name)
		if !found {
			if err := missingObjectError(in.Refs, kind, name, optional); err != nil {
				return fmt.Errorf("setting the environment of container %q: envFrom[%d]: %w", in.Container.Name, i, err)
			}
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if err := checkNoNUL(data[key]); err != nil {
				return fmt.Errorf("setting the environment of container %q: envFrom[%d]: key %q of %s %q: %w", in.Container.Name, i, key, kind, name, err)
			}
			e.set(from.Prefix+key, data[key])
		}
	}
	return nil
}

func envFromObject(from *v1.EnvFromSource) (kind, name string, optional *bool) {
	if from.SecretRef != nil {
		return "Secret", from.SecretRef.Name, from.SecretRef.Optional
	}
	if from.ConfigMapRef != nil {
		return "ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional
	}
	return "ConfigMap", "", nil
}

// lookupKey returns the value of a key. If the key is missing and optional, set is false,
// and the variable is omitted.
func lookupKey(in *ContainerInput, kind, name, key string, optional *bool) (value string, set bool, err error) {
	data, found := textData(in, kind, name)
	value, ok := data[key]
	switch {
	case ok:
		return value, true, checkNoNUL(value)
	case !found:
		return "", false, missingObjectError(in.Refs, kind, name, optional)
	case isTrue(optional):
		return "", false, nil
	case in.Pod.Traits.HasRefsFromServer:
		return "", false, missingError(fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kind, in.Pod.Key.Namespace, name))
	}
	return "", false, fmt.Errorf("key %q of %s %q %w", key, kind, name, ErrMissing)
}

// textData returns the part of an object's data that can be the values of variables. found is false
// if the object is missing.
func textData(in *ContainerInput, kind, name string) (data map[string]string, found bool) {
	if kind == "ConfigMap" {
		c := in.Refs.ConfigMap(name)
		if c == nil {
			return nil, false
		}
		return c.Data, true
	}
	s := in.Refs.Secret(name)
	if s == nil {
		return nil, false
	}
	data = make(map[string]string, len(s.Data))
	for key, bytes := range s.Data {
		data[key] = string(bytes)
	}
	return data, true
}

// checkNoNUL returns an error if s contains a NUL byte, because a variable cannot have a value with
// a NUL byte. The error does not contain s.
func checkNoNUL(s string) error {
	if strings.Contains(s, "\x00") {
		return fmt.Errorf("the value contains a NUL byte, so it cannot be the value of a variable; mount it as a file")
	}
	return nil
}
