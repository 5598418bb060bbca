package manifest

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// EffectiveRestartPolicy returns the restart policy of a container: the policy of c if c has one,
// otherwise the policy of the pod.
func EffectiveRestartPolicy(spec *v1.PodSpec, c *v1.Container) v1.RestartPolicy {
	if c.RestartPolicy != nil {
		return v1.RestartPolicy(*c.RestartPolicy)
	}
	return spec.RestartPolicy
}

// RestartsAfter reports whether a container is restarted after an exit with this code. If no
// restart rule of the container matches the code, the restart policy decides. The caller must
// handle init containers that exit with 0, because they have completed.
func RestartsAfter(spec *v1.PodSpec, c *v1.Container, code int32) bool {
	if r := matchingRule(c, code); r != nil && (r.Action == v1.ContainerRestartRuleActionRestart || r.Action == v1.ContainerRestartRuleActionRestartAllContainers) {
		return true
	}
	switch EffectiveRestartPolicy(spec, c) {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// RestartsAllAfter reports whether all containers of the pod are restarted after container c has
// exited with this code (KEP-5532).
func RestartsAllAfter(c *v1.Container, code int32) bool {
	r := matchingRule(c, code)
	return r != nil && r.Action == v1.ContainerRestartRuleActionRestartAllContainers
}

// CanRestartAll reports whether an exit of container c can restart all containers of the pod.
func CanRestartAll(c *v1.Container) bool {
	return c.RestartPolicy != nil && slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool {
		return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
	})
}

// HasRestartAll reports whether CanRestartAll is true for a container of the pod.
func HasRestartAll(spec *v1.PodSpec) bool {
	canRestartAll := func(c v1.Container) bool { return CanRestartAll(&c) }
	return slices.ContainsFunc(spec.InitContainers, canRestartAll) || slices.ContainsFunc(spec.Containers, canRestartAll)
}

// matchingRule returns the first restart rule of a container that matches an exit code; nil if there
// is none. Without a restart policy of the container, rules have no effect, as in Kubernetes.
func matchingRule(c *v1.Container, code int32) *v1.ContainerRestartRule {
	if c.RestartPolicy == nil {
		return nil
	}
	for i := range c.RestartPolicyRules {
		if r := &c.RestartPolicyRules[i]; ruleMatches(r, code) {
			return r
		}
	}
	return nil
}

func ruleMatches(r *v1.ContainerRestartRule, code int32) bool {
	if r.ExitCodes == nil {
		return false
	}
	isListed := slices.Contains(r.ExitCodes.Values, code)
	switch r.ExitCodes.Operator {
	case v1.ContainerRestartRuleOnExitCodesOpIn:
		return isListed
	case v1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !isListed
	}
	return false
}

// RunsForever reports whether a pod never finishes by itself, because one of its regular
// containers is restarted after every exit.
func RunsForever(spec *v1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c v1.Container) bool { return RestartsAlways(spec, &c) })
}

// RestartsAlways reports whether a container is restarted after every exit, whatever the exit
// code is.
func RestartsAlways(spec *v1.PodSpec, c *v1.Container) bool {
	return !slices.ContainsFunc(distinctExitCodes(c), func(code int32) bool { return !RestartsAfter(spec, c, code) })
}

// distinctExitCodes returns one exit code for each case that the restart policy and rules of a
// container distinguish. The cases are 0, every code that a rule lists, and a code that no rule
// lists.
func distinctExitCodes(c *v1.Container) []int32 {
	codes := []int32{0}
	for i := range c.RestartPolicyRules {
		if e := c.RestartPolicyRules[i].ExitCodes; e != nil {
			codes = append(codes, e.Values...)
		}
	}
	unlistedCode := int32(1)
	for slices.Contains(codes, unlistedCode) {
		unlistedCode++
	}
	return append(codes, unlistedCode)
}
