package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// addFrom sets a variable for each key of the objects that a container names as
// a whole, sorted within an object; a later object wins. What is bytes in a
// ConfigMap is no variable.
func (e *environment) addFrom(in *ContainerInput) error {
	for i := range in.Container.EnvFrom {
		from := &in.Container.EnvFrom[i]
		kind, name, optional := objectOf(from)
		data, there := textsOf(in, kind, name)
		if !there {
			if err := lacking(in.Supply, kind, name, optional); err != nil {
				return fmt.Errorf("making the environment of container %q: envFrom[%d]: %w", in.Container.Name, i, err)
			}
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if err := processText(data[key]); err != nil {
				return fmt.Errorf("making the environment of container %q: envFrom[%d]: key %q of %s %q: %w", in.Container.Name, i, key, kind, name, err)
			}
			e.set(from.Prefix+key, data[key])
		}
	}
	return nil
}

func objectOf(from *v1.EnvFromSource) (kind, name string, optional *bool) {
	if from.SecretRef != nil {
		return "Secret", from.SecretRef.Name, from.SecretRef.Optional
	}
	if from.ConfigMapRef != nil {
		return "ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional
	}
	return "ConfigMap", "", nil
}

// keyValue is the value of one key; set is false for an optional one that is
// not there, and the variable is left out then.
func keyValue(in *ContainerInput, kind, name, key string, optional *bool) (value string, set bool, err error) {
	data, there := textsOf(in, kind, name)
	value, ok := data[key]
	switch {
	case ok:
		return value, true, processText(value)
	case !there:
		return "", false, lacking(in.Supply, kind, name, optional)
	case isTrue(optional):
		return "", false, nil
	case in.Pod.Origin.Kind == manifest.KindAPI:
		return "", false, missingError(fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kind, in.Pod.Key.Namespace, name))
	}
	return "", false, fmt.Errorf("key %q of %s %q %w", key, kind, name, ErrMissing)
}

// textsOf is what of an object can be a variable.
func textsOf(in *ContainerInput, kind, name string) (data map[string]string, there bool) {
	if kind == "ConfigMap" {
		c := in.Supply.ConfigMap(name)
		if c == nil {
			return nil, false
		}
		return c.Data, true
	}
	s := in.Supply.Secret(name)
	if s == nil {
		return nil, false
	}
	data = make(map[string]string, len(s.Data))
	for key, bytes := range s.Data {
		data[key] = string(bytes)
	}
	return data, true
}

// processText checks what becomes a C string, without showing it.
func processText(s string) error {
	if strings.Contains(s, "\x00") {
		return fmt.Errorf("it holds a NUL byte, which no process can be given; mount it as a file")
	}
	return nil
}
