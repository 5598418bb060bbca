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

// AddEphemeral returns p with the ephemeral containers in list. The list must contain all
// those of p unchanged, in any order; new ones get their defaults. The errors are those of
// an API server and those for fields that podd refuses in any container. After an error p
// is returned unchanged.
func AddEphemeral(p *manifest.Pod, list []v1.EphemeralContainer) (*manifest.Pod, field.ErrorList) {
	path := field.NewPath("spec", "ephemeralContainers")
	has := p.Spec.Spec.EphemeralContainers
	all, sent := slices.Clone(has), make([]v1.EphemeralContainer, len(list))
	var errs field.ErrorList
	for i := range list {
		c := list[i].DeepCopy()
		defaults.Container((*v1.Container)(&c.EphemeralContainerCommon))
		sent[i] = *c
		if !slices.ContainsFunc(has, ephemeralNamed(c.Name)) {
			all = append(all, *c)
		}
	}
	for i := range has {
		switch at := slices.IndexFunc(sent, ephemeralNamed(has[i].Name)); {
		case at < 0:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q exists and cannot be removed; it is removed with its pod", has[i].Name)))
		case !equality.Semantic.DeepEqual(sent[at], has[i]):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q exists and cannot be changed; add a container with another name", has[i].Name)))
		}
	}
	errs = append(errs, validate.EphemeralContainers(&p.Spec.Spec, sent, path)...)
	if len(errs) > 0 {
		return p, errs
	}
	return p.WithEphemeral(all), nil
}

func ephemeralNamed(name string) func(v1.EphemeralContainer) bool {
	return func(c v1.EphemeralContainer) bool { return c.Name == name }
}
