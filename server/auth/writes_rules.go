package auth

import (
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
)

// Where a rule has a wildcard, these are what is left of it without writing.
var (
	otherVerbs = []string{"get", "list", "watch", "impersonate"}
	otherParts = []string{"*/attach", "*/checkpoint", "*/exec", "*/portforward", "*/proxy"}
)

// Rules implements Authorizer: nothing that Allows refuses.
func (w Writes) Rules(u User, namespace string) ([]rbac.PolicyRule, error) {
	rules, err := w.Authorizer.Rules(u, namespace)
	if slices.Contains(u.Groups, Masters) {
		return rules, err
	}
	var all []rbac.PolicyRule
	for i := range rules {
		all = append(all, withoutWrites(&rules[i])...)
	}
	return all, err
}

// withoutWrites is a rule less the writes in it, which takes several.
func withoutWrites(r *rbac.PolicyRule) []rbac.PolicyRule {
	inCore := func(group string) bool { return group == "" || group == rbac.APIGroupAll }
	verb := func(v string) bool { return v == rbac.VerbAll || slices.Contains(writingVerbs, v) }
	if !slices.ContainsFunc(r.APIGroups, inCore) || !slices.ContainsFunc(r.Verbs, verb) || !slices.ContainsFunc(r.Resources, isWritten) {
		return []rbac.PolicyRule{*r}
	}
	elsewhere, read, rest := *r, *r, *r
	elsewhere.APIGroups = slices.DeleteFunc(slices.Clone(r.APIGroups), inCore)
	read.Verbs = less(r.Verbs, rbac.VerbAll, verb, otherVerbs)
	rest.Resources = less(r.Resources, rbac.ResourceAll, isWritten, otherParts)
	var all []rbac.PolicyRule
	for _, rule := range []rbac.PolicyRule{elsewhere, read, rest} {
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

// isWritten says of a rule's resource whether it has one that is written.
func isWritten(resource string) bool {
	name, part, _ := strings.Cut(resource, "/")
	return (name == rbac.ResourceAll || slices.Contains(writtenResources, name)) && slices.Contains(writtenParts, part)
}

// less is list without some; in place of a wildcard it has what is left.
func less(list []string, wildcard string, some func(string) bool, left []string) []string {
	out := slices.DeleteFunc(slices.Clone(list), some)
	if slices.Contains(list, wildcard) {
		out = append(out, left...)
	}
	return out
}
