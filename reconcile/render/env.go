package render

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An environment contains the variables of a container, in the order of the manifest. Each name
// occurs once. If a later variable has the same name, its value replaces the earlier value.
type environment struct {
	vars  []*cri.KeyValue
	index map[string]int // index in vars by name
	// services contains the variables of Services. The container's own variables can refer to
	// them and replace them.
	services map[string]string
}

// newEnvironment adds the variables of envFrom, and then the variables of env in their order, so
// that $(NAME) refers only to earlier variables.
func newEnvironment(in *ContainerInput) (*environment, error) {
	e := &environment{index: map[string]int{}, services: map[string]string{}}
	services := in.Refs.ServiceVariables()
	for _, v := range services {
		e.services[v.Name] = v.Value
	}
	if err := e.addEnvFrom(in); err != nil {
		return nil, err
	}
	for i := range in.Container.Env {
		v := &in.Container.Env[i]
		value, set, err := e.value(in, v)
		if err != nil {
			return nil, fmt.Errorf("setting variable %q of container %q: %w", v.Name, in.Container.Name, err)
		}
		if set {
			e.set(v.Name, value)
		}
	}
	for _, v := range services {
		if _, exists := e.index[v.Name]; !exists {
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

// prepend adds vars before all other variables, but omits the variables that the container itself
// sets. The container's command can refer to the added variables, but the container's other
// variables cannot.
func (e *environment) prepend(vars []*cri.KeyValue) {
	var newVars []*cri.KeyValue
	for _, v := range vars {
		if _, exists := e.index[v.Key]; !exists {
			newVars = append(newVars, v)
		}
	}
	e.vars = append(newVars, e.vars...)
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

// value returns the value of a variable. If set is false, the variable must be omitted. Errors
// never contain the value.
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
		return lookupKey(in, "ConfigMap", ref.Name, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return lookupKey(in, "Secret", ref.Name, ref.Key, ref.Optional)
	case from.FileKeyRef != nil:
		return lookupFileKey(in, from.FileKeyRef)
	}
	return "", false, fmt.Errorf("valueFrom: the source is not supported; set the value in the manifest")
}
