package validate

import (
	v1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateTolerations validates tolerations. They have no effect without a scheduler, but an
// API server would refuse the mirror pod because of an invalid toleration.
func validateTolerations(list []v1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		t, at := &list[i], path.Index(i)
		if t.Key != "" {
			errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != v1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), string(t.Operator), "must be Exists if key is empty"))
		}
		switch t.Operator {
		case "", v1.TolerationOpEqual:
			errs = append(errs, invalidErrors(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		case v1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Forbidden(at.Child("value"), "operator Exists allows no value"))
			}
		default:
			errs = append(errs, validateOneOf(at.Child("operator"), t.Operator, v1.TolerationOpEqual, v1.TolerationOpExists)...)
		}
		if t.Effect != "" {
			errs = append(errs, validateOneOf(at.Child("effect"), t.Effect, v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)...)
		}
		if t.TolerationSeconds != nil && t.Effect != v1.TaintEffectNoExecute {
			errs = append(errs, field.Forbidden(at.Child("tolerationSeconds"), "may be set for effect NoExecute only"))
		}
	}
	return errs
}
