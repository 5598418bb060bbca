package auth

import (
	"context"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
)

// An Authorizer decides which users may make which requests. It must be safe for
// concurrent use.
type Authorizer interface {
	// Allows reports whether the user may make the request that Attributes describe. If
	// it returns an error, the Authorizer could not decide and the request must be
	// rejected.
	Allows(context.Context, User, Attributes) (bool, error)
	// Rules returns the rules that apply to the user in a namespace and for
	// cluster-scoped resources. If Rules also returns an error, the list may be
	// incomplete.
	Rules(u User, namespace string) ([]rbac.PolicyRule, error)
}

// AllowAll allows every request of every authenticated user.
type AllowAll struct{}

// Allows implements Authorizer.
func (AllowAll) Allows(context.Context, User, Attributes) (bool, error) { return true, nil }

// Rules implements Authorizer.
func (AllowAll) Rules(User, string) ([]rbac.PolicyRule, error) { return mastersRules, nil }

// Policy allows the requests that its roles and bindings grant, and every request of
// system:masters. As in every cluster, it also lets authenticated users read the discovery
// documents and review their own permissions. The zero Policy has no roles.
type Policy struct{ grants []grant }

// A grant is a rule and the subjects to which it is bound.
type grant struct {
	rule      rbac.PolicyRule
	namespace string // "" for all namespaces
	users     []string
	groups    []string
}

var _ Authorizer = Policy{}

// defaultGrants grants the rules of the cluster roles system:discovery and system:basic-user to all
// authenticated users.
var defaultGrants = []grant{
	{groups: []string{authenticatedGroup}, rule: rbac.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{
		"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/",
	}}},
	{groups: []string{authenticatedGroup}, rule: rbac.PolicyRule{
		Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"},
		Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	}},
	{groups: []string{authenticatedGroup}, rule: rbac.PolicyRule{
		Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"},
	}},
}

var mastersRules = []rbac.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Allows implements Authorizer.
func (p Policy) Allows(_ context.Context, u User, a Attributes) (bool, error) {
	if u.isRoot() {
		return true, nil
	}
	for _, grants := range [][]grant{defaultGrants, p.grants} {
		if slices.ContainsFunc(grants, func(g grant) bool { return g.appliesTo(u) && g.covers(a) }) {
			return true, nil
		}
	}
	return false, nil
}

// Rules implements Authorizer.
func (p Policy) Rules(u User, namespace string) ([]rbac.PolicyRule, error) {
	if u.isRoot() {
		return mastersRules, nil
	}
	var rules []rbac.PolicyRule
	for _, g := range slices.Concat(defaultGrants, p.grants) {
		if g.appliesTo(u) && (g.namespace == "" || g.namespace == namespace) {
			rules = append(rules, g.rule)
		}
	}
	return rules, nil
}

func (g *grant) appliesTo(u User) bool {
	return slices.Contains(g.users, u.Name) ||
		slices.ContainsFunc(u.Groups, func(name string) bool { return slices.Contains(g.groups, name) })
}

// covers reports whether the rule allows the request a. It ignores the user.
func (g *grant) covers(a Attributes) bool {
	rule := &g.rule
	if !containsOrWildcard(rule.Verbs, a.Verb) || g.namespace != "" && g.namespace != a.Namespace {
		return false
	}
	if a.Resource == "" {
		return g.namespace == "" && slices.ContainsFunc(rule.NonResourceURLs, func(u string) bool { return u == a.Path || matchesPrefix(u, a.Path) })
	}
	return containsOrWildcard(rule.APIGroups, a.Group) &&
		slices.ContainsFunc(a.Subresources, func(sub string) bool { return coversResource(rule.Resources, a.Resource, sub) }) &&
		(len(rule.ResourceNames) == 0 || a.Name != "" && slices.Contains(rule.ResourceNames, a.Name))
}

// matchesPrefix reports whether pattern is a non-resource URL that ends with * and path
// begins with the text before the *. A * elsewhere is not a wildcard.
func matchesPrefix(pattern, path string) bool {
	prefix, hasWildcard := strings.CutSuffix(pattern, "*")
	return hasWildcard && strings.HasPrefix(path, prefix)
}

// coversResource reports whether the resources of a rule include the subresource sub of a resource.
// If sub is "", it reports whether they include the resource itself.
func coversResource(resources []string, resource, sub string) bool {
	if slices.Contains(resources, rbac.ResourceAll) {
		return true
	}
	if sub == "" {
		return slices.Contains(resources, resource)
	}
	return slices.Contains(resources, resource+"/"+sub) || slices.Contains(resources, "*/"+sub)
}

// containsOrWildcard reports whether list contains value or a wildcard.
func containsOrWildcard(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}
