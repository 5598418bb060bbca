package manifest

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// RestartPolicyOf is a container's own restart policy, else its pod's.
func RestartPolicyOf(spec *v1.PodSpec, c *v1.Container) v1.RestartPolicy {
	if c.RestartPolicy != nil {
		return v1.RestartPolicy(*c.RestartPolicy)
	}
	return spec.RestartPolicy
}

// RestartsAfter says that a container is started again after such an exit: by a
// rule of its own, else by its restart policy. An init container that exits with
// 0 has done its work, whatever this says.
func RestartsAfter(spec *v1.PodSpec, c *v1.Container, code int32) bool {
	// Without a policy beside them rules count for nothing, as in Kubernetes.
	if c.RestartPolicy != nil && slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool { return restarts(&r, code) }) {
		return true
	}
	switch RestartPolicyOf(spec, c) {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

func restarts(r *v1.ContainerRestartRule, code int32) bool {
	if r.Action != v1.ContainerRestartRuleActionRestart || r.ExitCodes == nil {
		return false
	}
	named := slices.Contains(r.ExitCodes.Values, code)
	switch r.ExitCodes.Operator {
	case v1.ContainerRestartRuleOnExitCodesOpIn:
		return named
	case v1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !named
	}
	return false
}

// GoesOn says that a pod does not end by itself: one of its regular containers is
// started again after every exit.
func GoesOn(spec *v1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c v1.Container) bool {
		return !slices.ContainsFunc(exitCodes(&c), func(code int32) bool { return !RestartsAfter(spec, &c, code) })
	})
}

// exitCodes has one of each kind that a container's policy and rules tell apart:
// 0, those that are named, and one that is not.
func exitCodes(c *v1.Container) []int32 {
	codes := []int32{0}
	for i := range c.RestartPolicyRules {
		if e := c.RestartPolicyRules[i].ExitCodes; e != nil {
			codes = append(codes, e.Values...)
		}
	}
	other := int32(1)
	for slices.Contains(codes, other) {
		other++
	}
	return append(codes, other)
}
