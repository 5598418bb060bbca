package auth

import (
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
)

// nonWriteVerbs and nonWritableSubresources replace a wildcard in a rule. nonWriteVerbs are the
// verbs that remain after the removal of writeVerbs, and nonWritableSubresources are the
// subresources that remain after the removal of writableSubresources.
var (
	nonWriteVerbs           = []string{"get", "list", "watch", impersonateVerb}
	nonWritableSubresources = []string{"*/attach", "*/checkpoint", "*/exec", "*/portforward", "*/proxy"}
)

// Rules implements Authorizer. The rules include no request that Allows rejects. They include
// impersonation of groups only if a rule names the groups, because no rule can include all groups
// except system:masters.
func (w WriteAuthorizer) Rules(u User, namespace string) ([]rbac.PolicyRule, error) {
	rules, err := w.Authorizer.Rules(u, namespace)
	if u.mayWrite() {
		return rules, err
	}
	var result []rbac.PolicyRule
	for i := range rules {
		for _, rule := range withoutWrites(&rules[i]) {
			result = append(result, withoutRoot(&rule)...)
		}
	}
	return result, err
}

// withoutRoot returns rules that allow everything that r allows except the impersonation
// of system:masters.
func withoutRoot(r *rbac.PolicyRule) []rbac.PolicyRule {
	isCoreGroup := func(group string) bool { return group == "" || group == rbac.APIGroupAll }
	isImpersonateVerb := func(v string) bool { return v == rbac.VerbAll || v == impersonateVerb }
	isGroupsResource := func(resource string) bool { return resource == rbac.ResourceAll || resource == "groups" }
	isMastersGroup := func(name string) bool { return name == MastersGroup }
	if !slices.ContainsFunc(r.APIGroups, isCoreGroup) || !slices.ContainsFunc(r.Verbs, isImpersonateVerb) || !slices.ContainsFunc(r.Resources, isGroupsResource) ||
		len(r.ResourceNames) > 0 && !slices.ContainsFunc(r.ResourceNames, isMastersGroup) {
		return []rbac.PolicyRule{*r}
	}
	otherGroups, otherVerbs, userRule, groupRule := *r, *r, *r, *r
	otherGroups.APIGroups = slices.DeleteFunc(slices.Clone(r.APIGroups), isCoreGroup)
	otherVerbs.Verbs = removeMatching(r.Verbs, rbac.VerbAll, isImpersonateVerb, append([]string{"get", "list", "watch"}, writeVerbs...))
	userRule.Verbs = []string{impersonateVerb}
	userRule.Resources = removeMatching(r.Resources, rbac.ResourceAll, isGroupsResource, []string{"users", "serviceaccounts"})
	groupRule.Verbs = userRule.Verbs
	groupRule.ResourceNames = slices.DeleteFunc(slices.Clone(r.ResourceNames), isMastersGroup)
	parts := []rbac.PolicyRule{otherGroups, otherVerbs, userRule}
	if len(groupRule.ResourceNames) > 0 {
		parts = append(parts, groupRule)
	}
	return completeRules(parts, r)
}

// withoutWrites returns rules that allow everything that r allows except writes.
func withoutWrites(r *rbac.PolicyRule) []rbac.PolicyRule {
	isWriteVerb := func(v string) bool { return v == rbac.VerbAll || slices.Contains(writeVerbs, v) }
	if !slices.ContainsFunc(r.APIGroups, isWritableGroup) || !slices.ContainsFunc(r.Verbs, isWriteVerb) || !slices.ContainsFunc(r.Resources, isWritable) {
		return []rbac.PolicyRule{*r}
	}
	otherGroups, otherVerbs, otherResources := *r, *r, *r
	otherGroups.APIGroups = slices.DeleteFunc(slices.Clone(r.APIGroups), isWritableGroup)
	otherVerbs.Verbs = removeMatching(r.Verbs, rbac.VerbAll, isWriteVerb, nonWriteVerbs)
	otherResources.Resources = removeMatching(r.Resources, rbac.ResourceAll, isWritable, nonWritableSubresources)
	return completeRules([]rbac.PolicyRule{otherGroups, otherVerbs, otherResources}, r)
}

// completeRules returns those elements of parts that have at least one API group, verb and resource.
// If r has non-resource URLs, the result also contains a rule for these URLs.
func completeRules(parts []rbac.PolicyRule, r *rbac.PolicyRule) []rbac.PolicyRule {
	var rules []rbac.PolicyRule
	for _, rule := range parts {
		rule.NonResourceURLs = nil
		if len(rule.APIGroups) > 0 && len(rule.Verbs) > 0 && len(rule.Resources) > 0 {
			rules = append(rules, rule)
		}
	}
	if len(r.NonResourceURLs) > 0 {
		rules = append(rules, rbac.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
	}
	return rules
}

// isWritable reports whether a resource of a rule, such as "pods/resize" or "*", includes a
// resource that can be written.
func isWritable(resource string) bool {
	name, subresource, _ := strings.Cut(resource, "/")
	return (name == rbac.ResourceAll || slices.Contains(writableResources, name)) && slices.Contains(writableSubresources, subresource)
}

// removeMatching returns a copy of list without the elements for which the function remove returns
// true. If list contains the wildcard, the result also contains all elements of remaining.
func removeMatching(list []string, wildcard string, remove func(string) bool, remaining []string) []string {
	result := slices.DeleteFunc(slices.Clone(list), remove)
	if slices.Contains(list, wildcard) {
		result = append(result, remaining...)
	}
	return result
}
