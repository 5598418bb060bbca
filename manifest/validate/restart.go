package validate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Maximum number of restart rules of a container, and of exit codes in a rule.
const (
	maxRestartRules = 20
	maxExitCodes    = 255
)

// validateRestart validates the restart policy and rules of a regular container.
func validateRestart(c *v1.Container, path *field.Path) field.ErrorList {
	if c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0 {
		missingPolicy := field.Required(path.Child("restartPolicy"), "specify what happens after an exit code that no rule lists")
		return append(field.ErrorList{missingPolicy}, validateRules(c.RestartPolicyRules, path.Child("restartPolicyRules"))...)
	}
	return append(validateContainerPolicy(c, path), validateRules(c.RestartPolicyRules, path.Child("restartPolicyRules"))...)
}

// validateInitRestart validates the restart policy and rules of an init container or sidecar.
func validateInitRestart(c *v1.Container, path *field.Path) field.ErrorList {
	if c.RestartPolicy != nil || len(c.RestartPolicyRules) == 0 {
		return validateRestart(c, path)
	}
	return field.ErrorList{field.Required(path.Child("restartPolicy"), "specify what happens after an exit code that no rule lists")}
}

func validateContainerPolicy(c *v1.Container, path *field.Path) field.ErrorList {
	if c.RestartPolicy == nil {
		return nil
	}
	return validateOneOf(path.Child("restartPolicy"), *c.RestartPolicy,
		v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)
}

func validateRules(rules []v1.ContainerRestartRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rules) > maxRestartRules {
		errs = append(errs, field.TooMany(path, len(rules), maxRestartRules))
	}
	for i := range rules {
		at := path.Index(i)
		errs = append(errs, validateOneOf(at.Child("action"), rules[i].Action, v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)...)
		e := rules[i].ExitCodes
		if at = at.Child("exitCodes"); e == nil {
			errs = append(errs, field.Required(at, "specify the exit codes"))
			continue
		}
		errs = append(errs, validateOneOf(at.Child("operator"), e.Operator, v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if len(e.Values) > maxExitCodes {
			errs = append(errs, field.TooMany(at.Child("values"), len(e.Values), maxExitCodes))
		}
	}
	return errs
}
