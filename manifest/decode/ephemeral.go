package decode

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/defaults"
	"podd/manifest/validate"
)

// AddEphemeral returns p with the ephemeral containers of the parameter list. The list must contain
// all ephemeral containers of p unchanged, in any order. AddEphemeral sets the defaults of new
// containers. It returns the errors that an API server would return, and errors for fields that
// podd does not support. If there is an error, AddEphemeral returns p unchanged.
func AddEphemeral(p *manifest.Pod, list []v1.EphemeralContainer) (*manifest.Pod, field.ErrorList) {
	path := field.NewPath("spec", "ephemeralContainers")
	has := p.Object.Spec.EphemeralContainers
	all, sent := slices.Clone(has), make([]v1.EphemeralContainer, len(list))
	var errs field.ErrorList
	for i := range list {
		c := list[i].DeepCopy()
		defaults.Container((*v1.Container)(&c.EphemeralContainerCommon))
		sent[i] = *c
		if !slices.ContainsFunc(has, matchEphemeralName(c.Name)) {
			all = append(all, *c)
		}
	}
	for i := range has {
		switch at := slices.IndexFunc(sent, matchEphemeralName(has[i].Name)); {
		case at < 0:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q exists and cannot be removed before its pod is removed", has[i].Name)))
		case !equality.Semantic.DeepEqual(sent[at], has[i]):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q exists and cannot be changed; add a container with another name", has[i].Name)))
		}
	}
	errs = append(errs, validate.EphemeralContainers(&p.Object.Spec, sent, path)...)
	if len(errs) > 0 {
		return p, errs
	}
	return p.WithEphemeral(all), nil
}

// matchEphemeralName returns a function that reports whether a container has the given name.
func matchEphemeralName(name string) func(v1.EphemeralContainer) bool {
	return func(c v1.EphemeralContainer) bool { return c.Name == name }
}
