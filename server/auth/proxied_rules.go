package auth

import (
	"slices"

	rbac "k8s.io/api/rbac/v1"
)

// otherResources replaces the wildcard for resources in a rule that includes the reading
// of Secrets.
var otherResources = []string{
	"configmaps", "events", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods",
	"*/attach", "*/checkpoint", "*/exec", "*/log", "*/portforward", "*/proxy", "*/status",
}

var readingVerbs = []string{"get", "list", "watch"}

// Rules implements Authorizer. If u is forwarded, the rules do not include the reading of
// Secrets.
func (p Proxied) Rules(u User, namespace string) ([]rbac.PolicyRule, error) {
	rules, err := p.Authorizer.Rules(u, namespace)
	if !u.Forwarded {
		return rules, err
	}
	var all []rbac.PolicyRule
	for i := range rules {
		all = append(all, withoutSecrets(&rules[i])...)
	}
	return all, err
}

// readsSecrets reports whether a includes the reading of Secrets.
func (a *Attributes) readsSecrets() bool {
	return a.inCore() && (a.Resource == "secrets" || a.Resource == rbac.ResourceAll) &&
		(slices.Contains(readingVerbs, a.Verb) || a.Verb == rbac.VerbAll) &&
		(slices.Contains(a.Subresources, "") || slices.Contains(a.Subresources, rbac.ResourceAll))
}

// withoutSecrets returns rules that allow everything that r allows except the reading of
// Secrets.
func withoutSecrets(r *rbac.PolicyRule) []rbac.PolicyRule {
	inCore := func(group string) bool { return group == "" || group == rbac.APIGroupAll }
	verb := func(v string) bool { return v == rbac.VerbAll || slices.Contains(readingVerbs, v) }
	secrets := func(resource string) bool { return resource == rbac.ResourceAll || resource == "secrets" }
	if !slices.ContainsFunc(r.APIGroups, inCore) || !slices.ContainsFunc(r.Verbs, verb) || !slices.ContainsFunc(r.Resources, secrets) {
		return []rbac.PolicyRule{*r}
	}
	elsewhere, otherActions, rest := *r, *r, *r
	elsewhere.APIGroups = slices.DeleteFunc(slices.Clone(r.APIGroups), inCore)
	otherActions.Verbs = without(r.Verbs, rbac.VerbAll, verb, append([]string{impersonates}, writingVerbs...))
	rest.Resources = without(r.Resources, rbac.ResourceAll, secrets, otherResources)
	return complete([]rbac.PolicyRule{elsewhere, otherActions, rest}, r)
}
