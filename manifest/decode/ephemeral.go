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

// AddEphemeral returns a copy of p with the ephemeral containers of the parameter list. The list
// must contain all ephemeral containers of p unchanged, in any order. AddEphemeral sets the defaults
// of new containers. It returns the errors that an API server would return, and errors for fields
// that podd does not support. If there is an error, AddEphemeral returns p itself.
func AddEphemeral(p *manifest.Pod, list []v1.EphemeralContainer) (*manifest.Pod, field.ErrorList) {
	path := field.NewPath("spec", "ephemeralContainers")
	oldContainers := p.Object.Spec.EphemeralContainers
	allContainers, newContainers := slices.Clone(oldContainers), make([]v1.EphemeralContainer, len(list))
	var errs field.ErrorList
	for i := range list {
		c := list[i].DeepCopy()
		defaults.Container((*v1.Container)(&c.EphemeralContainerCommon))
		newContainers[i] = *c
		if !slices.ContainsFunc(oldContainers, matchEphemeralName(c.Name)) {
			allContainers = append(allContainers, *c)
		}
	}
	for i := range oldContainers {
		switch at := slices.IndexFunc(newContainers, matchEphemeralName(oldContainers[i].Name)); {
		case at < 0:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q exists and cannot be removed before its pod is removed", oldContainers[i].Name)))
		case !equality.Semantic.DeepEqual(newContainers[at], oldContainers[i]):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q exists and cannot be changed; add a container with another name", oldContainers[i].Name)))
		}
	}
	errs = append(errs, validate.EphemeralContainers(&p.Object.Spec, newContainers, path)...)
	if len(errs) > 0 {
		return p, errs
	}
	return p.WithEphemeral(allContainers), nil
}

// matchEphemeralName returns a function that reports whether a container has the given name.
func matchEphemeralName(name string) func(v1.EphemeralContainer) bool {
	return func(c v1.EphemeralContainer) bool { return c.Name == name }
}
