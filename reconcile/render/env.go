package render

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// environment is a container's variables in the order of the manifest, each
// name once. Index finds a name; a later variable of the same name takes the
// place and the value.
type environment struct {
	vars  []*cri.KeyValue
	index map[string]int
	// services tell of Services. The container's own variables see them all, and
	// take their place.
	services map[string]string
}

// newEnvironment takes whole objects first, and then resolves the container's
// variables one after the other, so that $(NAME) sees only what stands before
// it.
func newEnvironment(in *ContainerInput) (*environment, error) {
	e := &environment{index: map[string]int{}, services: map[string]string{}}
	services := in.Supply.ServiceVariables()
	for _, v := range services {
		e.services[v.Name] = v.Value
	}
	if err := e.addFrom(in); err != nil {
		return nil, err
	}
	for i := range in.Container.Env {
		v := &in.Container.Env[i]
		value, set, err := e.value(in, v)
		if err != nil {
			return nil, fmt.Errorf("making variable %q of container %q: %w", v.Name, in.Container.Name, err)
		}
		if set {
			e.set(v.Name, value)
		}
	}
	for _, v := range services {
		if _, own := e.index[v.Name]; !own {
			e.set(v.Name, v.Value)
		}
	}
	return e, nil
}

func (e *environment) set(name, value string) {
	if i, ok := e.index[name]; ok {
		e.vars[i].Value = []byte(value)
		return
	}
	e.index[name] = len(e.vars)
	e.vars = append(e.vars, &cri.KeyValue{Key: name, Value: []byte(value)})
}

// precede puts variables first, but for those that the container sets itself.
// The container's other variables do not see them, its command does.
func (e *environment) precede(vars []*cri.KeyValue) {
	var first []*cri.KeyValue
	for _, v := range vars {
		if _, own := e.index[v.Key]; !own {
			first = append(first, v)
		}
	}
	e.vars = append(first, e.vars...)
	for i, v := range e.vars {
		e.index[v.Key] = i
	}
}

func (e *environment) lookup(name string) (string, bool) {
	i, ok := e.index[name]
	if !ok {
		value, ok := e.services[name]
		return value, ok
	}
	return string(e.vars[i].Value), true
}

// value is one variable's value, and whether it has one; the errors never hold
// it.
func (e *environment) value(in *ContainerInput, v *v1.EnvVar) (value string, set bool, err error) {
	from := v.ValueFrom
	switch {
	case v.Value != "" || from == nil:
		return Expand(v.Value, e.lookup), true, nil
	case from.FieldRef != nil:
		value, err = fieldValue(in, from.FieldRef)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = resourceValue(in, from.ResourceFieldRef)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return keyValue(in, "ConfigMap", ref.Name, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return keyValue(in, "Secret", ref.Name, ref.Key, ref.Optional)
	}
	return "", false, fmt.Errorf("valueFrom: names no source that is served; write the value in the manifest")
}
