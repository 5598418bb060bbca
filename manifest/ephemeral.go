package manifest

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxEphemeral is the most bytes that the ephemeral containers of one pod have
// together as JSON: every list of the runtime's containers carries them.
const MaxEphemeral = 64 << 10

// mostEphemeral are as many as one pod may have: each is remembered until its pod
// goes, however small it is.
const mostEphemeral = 64

// WithEphemeral is p with these ephemeral containers, which are part of no
// manifest: neither hashes nor sizes tell of them. p itself where it has just
// these.
func (p *Pod) WithEphemeral(containers []v1.EphemeralContainer) *Pod {
	if len(containers) == 0 && len(p.Spec.Spec.EphemeralContainers) == 0 || equality.Semantic.DeepEqual(p.Spec.Spec.EphemeralContainers, containers) {
		return p
	}
	out, spec := *p, *p.Spec
	spec.Spec.EphemeralContainers = containers
	out.Spec = &spec
	return &out
}

// AddEphemeral is p with the ephemeral containers of a list that has all those of
// p, unchanged and in any order, and perhaps more, which get their defaults. The
// errors are what an apiserver's are and what podd refuses in any container; with
// one, p stays as it is.
func (p *Pod) AddEphemeral(list []v1.EphemeralContainer) (*Pod, field.ErrorList) {
	path := field.NewPath("spec", "ephemeralContainers")
	has := p.Spec.Spec.EphemeralContainers
	all, sent := slices.Clone(has), make([]v1.EphemeralContainer, len(list))
	var errs field.ErrorList
	for i := range list {
		c := list[i].DeepCopy()
		setContainerDefaults((*v1.Container)(&c.EphemeralContainerCommon))
		sent[i] = *c
		if !slices.ContainsFunc(has, ephemeralNamed(c.Name)) {
			all = append(all, *c)
		}
	}
	for i := range has {
		switch at := slices.IndexFunc(sent, ephemeralNamed(has[i].Name)); {
		case at < 0:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q is there and cannot be removed; it ends with its pod", has[i].Name)))
		case !equality.Semantic.DeepEqual(sent[at], has[i]):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q is there and cannot be changed; add one of another name", has[i].Name)))
		}
	}
	errs = append(errs, validateEphemeral(&p.Spec.Spec, sent, path)...)
	if len(errs) > 0 {
		return p, errs
	}
	return p.WithEphemeral(all), nil
}

func ephemeralNamed(name string) func(v1.EphemeralContainer) bool {
	return func(c v1.EphemeralContainer) bool { return c.Name == name }
}
