package validate

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateNodeAffinity(a *v1.Affinity, path *field.Path) field.ErrorList {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return validateNodeSelector(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, path.Child("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"))
}

// validateNodeSelector validates a selector, which may be nil.
func validateNodeSelector(s *v1.NodeSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "specify the node selector")}
	}
	var errs field.ErrorList
	terms := path.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		errs = append(errs, field.Required(terms, "without a term, no node is selected"))
	}
	for i, t := range s.NodeSelectorTerms {
		for j, r := range t.MatchExpressions {
			at := terms.Index(i).Child("matchExpressions").Index(j)
			errs = append(errs, metavalidation.ValidateLabelName(r.Key, at.Child("key"))...)
			errs = append(errs, validateRequirement(r, at)...)
		}
		for j, r := range t.MatchFields {
			errs = append(errs, validateFieldRequirement(r, terms.Index(i).Child("matchFields").Index(j))...)
		}
	}
	return errs
}

func validateRequirement(r v1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("values")
	switch r.Operator {
	case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(at, "operators In and NotIn require at least one value"))
		}
		for i, value := range r.Values {
			errs = append(errs, invalidErrors(at.Index(i), value, validation.IsValidLabelValue(value))...)
		}
	case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Forbidden(at, "operators Exists and DoesNotExist allow no values"))
		}
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(at, "operators Gt and Lt require exactly one value"))
		} else if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
			errs = append(errs, field.Invalid(at.Index(0), r.Values[0], "must be an integer"))
		}
	default:
		errs = append(errs, validateOneOf(path.Child("operator"), r.Operator, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn,
			v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt)...)
	}
	return errs
}

// validateFieldRequirement validates a requirement on a field of the node. The only field is
// metadata.name, and a requirement must contain exactly one value.
func validateFieldRequirement(r v1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	errs := validateOneOf(path.Child("key"), r.Key, metav1.ObjectNameField)
	operatorErrs := validateOneOf(path.Child("operator"), r.Operator, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn)
	if len(operatorErrs) > 0 {
		return append(errs, operatorErrs...)
	}
	if len(r.Values) != 1 {
		return append(errs, field.Required(path.Child("values"), "a field requires exactly one value"))
	}
	return append(errs, invalidErrors(path.Child("values").Index(0), r.Values[0], validation.IsDNS1123Subdomain(r.Values[0]))...)
}
