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
// impersonation of groups only if a rule names the groups, because it is not possible to write a
// rule for all groups except system:masters.
func (w WriteAuthorizer) Rules(u User, namespace string) ([]rbac.PolicyRule, error) {
	rules, err := w.Authorizer.Rules(u, namespace)
	if u.mayWrite() {
		return rules, err
	}
	var all []rbac.PolicyRule
	for i := range rules {
		for _, rule := range withoutWrites(&rules[i]) {
			all = append(all, withoutRoot(&rule)...)
		}
	}
	return all, err
}

// withoutRoot returns rules that allow everything that r allows except the impersonation
// of system:masters.
func withoutRoot(r *rbac.PolicyRule) []rbac.PolicyRule {
	inCore := func(group string) bool { return group == "" || group == rbac.APIGroupAll }
	verb := func(v string) bool { return v == rbac.VerbAll || v == impersonateVerb }
	groups := func(resource string) bool { return resource == rbac.ResourceAll || resource == "groups" }
	root := func(name string) bool { return name == MastersGroup }
	if !slices.ContainsFunc(r.APIGroups, inCore) || !slices.ContainsFunc(r.Verbs, verb) || !slices.ContainsFunc(r.Resources, groups) ||
		len(r.ResourceNames) > 0 && !slices.ContainsFunc(r.ResourceNames, root) {
		return []rbac.PolicyRule{*r}
	}
	elsewhere, otherActions, users, named := *r, *r, *r, *r
	elsewhere.APIGroups = slices.DeleteFunc(slices.Clone(r.APIGroups), inCore)
	otherActions.Verbs = removeMatching(r.Verbs, rbac.VerbAll, verb, append([]string{"get", "list", "watch"}, writeVerbs...))
	users.Verbs = []string{impersonateVerb}
	users.Resources = removeMatching(r.Resources, rbac.ResourceAll, groups, []string{"users", "serviceaccounts"})
	named.Verbs = users.Verbs
	named.ResourceNames = slices.DeleteFunc(slices.Clone(r.ResourceNames), root)
	all := []rbac.PolicyRule{elsewhere, otherActions, users}
	if len(named.ResourceNames) > 0 {
		all = append(all, named)
	}
	return completeRules(all, r)
}

// withoutWrites returns rules that allow everything that r allows except writes.
func withoutWrites(r *rbac.PolicyRule) []rbac.PolicyRule {
	verb := func(v string) bool { return v == rbac.VerbAll || slices.Contains(writeVerbs, v) }
	if !slices.ContainsFunc(r.APIGroups, isWritableGroup) || !slices.ContainsFunc(r.Verbs, verb) || !slices.ContainsFunc(r.Resources, isWritable) {
		return []rbac.PolicyRule{*r}
	}
	elsewhere, read, rest := *r, *r, *r
	elsewhere.APIGroups = slices.DeleteFunc(slices.Clone(r.APIGroups), isWritableGroup)
	read.Verbs = removeMatching(r.Verbs, rbac.VerbAll, verb, nonWriteVerbs)
	rest.Resources = removeMatching(r.Resources, rbac.ResourceAll, isWritable, nonWritableSubresources)
	return completeRules([]rbac.PolicyRule{elsewhere, read, rest}, r)
}

// completeRules returns the rules in the list parts that have at least one API group, verb and
// resource. If r has non-resource URLs, the result also contains a rule for them.
func completeRules(parts []rbac.PolicyRule, r *rbac.PolicyRule) []rbac.PolicyRule {
	var all []rbac.PolicyRule
	for _, rule := range parts {
		rule.NonResourceURLs = nil
		if len(rule.APIGroups) > 0 && len(rule.Verbs) > 0 && len(rule.Resources) > 0 {
			all = append(all, rule)
		}
	}
	if len(r.NonResourceURLs) > 0 {
		all = append(all, rbac.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
	}
	return all
}

// isWritable reports whether a resource of a rule, such as "pods/resize" or "*", includes a
// resource that can be written.
func isWritable(resource string) bool {
	name, part, _ := strings.Cut(resource, "/")
	return (name == rbac.ResourceAll || slices.Contains(writableResources, name)) && slices.Contains(writableSubresources, part)
}

// removeMatching returns a copy of list without the elements for which the function remove returns
// true. If list contains the wildcard, the result also contains all elements of rest.
func removeMatching(list []string, wildcard string, remove func(string) bool, rest []string) []string {
	out := slices.DeleteFunc(slices.Clone(list), remove)
	if slices.Contains(list, wildcard) {
		out = append(out, rest...)
	}
	return out
}
