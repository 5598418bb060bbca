package auth

import (
	"context"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
)

// Authorizer tells who may what. It must be safe for concurrent use. Its errors say
// that it could not tell; nothing is allowed with one.
type Authorizer interface {
	Allows(context.Context, User, Attributes) (bool, error)
	// Rules are all that allow a user something: in a namespace, and of what is
	// in none. With an error there may be more.
	Rules(u User, namespace string) ([]rbac.PolicyRule, error)
}

// All allows everything to everyone who is known.
type All struct{}

// Allows implements Authorizer.
func (All) Allows(context.Context, User, Attributes) (bool, error) { return true, nil }

// Rules implements Authorizer.
func (All) Rules(User, string) ([]rbac.PolicyRule, error) { return mastersRules, nil }

// Policy allows what roles and their bindings do, everything to system:masters,
// and to whoever is known what every cluster does: to learn what there is and
// what they themselves may. The zero Policy allows nothing else.
type Policy struct{ grants []grant }

// grant is a rule with those whom it is bound to.
type grant struct {
	rule      rbac.PolicyRule
	namespace string // "" for everywhere
	users     []string
	groups    []string
}

var _ Authorizer = Policy{}

// toAll are the cluster roles system:discovery and system:basic-user.
var toAll = []grant{
	{groups: []string{authenticated}, rule: rbac.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{
		"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/",
	}}},
	{groups: []string{authenticated}, rule: rbac.PolicyRule{
		Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"},
		Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	}},
	{groups: []string{authenticated}, rule: rbac.PolicyRule{
		Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"},
	}},
}

var mastersRules = []rbac.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Allows implements Authorizer.
func (p Policy) Allows(_ context.Context, u User, a Attributes) (bool, error) {
	if slices.Contains(u.Groups, Masters) {
		return true, nil
	}
	for _, all := range [][]grant{toAll, p.grants} {
		if slices.ContainsFunc(all, func(g grant) bool { return g.to(u) && g.covers(a) }) {
			return true, nil
		}
	}
	return false, nil
}

// Rules implements Authorizer.
func (p Policy) Rules(u User, namespace string) ([]rbac.PolicyRule, error) {
	if slices.Contains(u.Groups, Masters) {
		return mastersRules, nil
	}
	var rules []rbac.PolicyRule
	for _, g := range slices.Concat(toAll, p.grants) {
		if g.to(u) && (g.namespace == "" || g.namespace == namespace) {
			rules = append(rules, g.rule)
		}
	}
	return rules, nil
}

func (g *grant) to(u User) bool {
	return slices.Contains(g.users, u.Name) ||
		slices.ContainsFunc(u.Groups, func(name string) bool { return slices.Contains(g.groups, name) })
}

// covers is RBAC's matching of a rule.
func (g *grant) covers(a Attributes) bool {
	rule := &g.rule
	if !has(rule.Verbs, a.Verb) || g.namespace != "" && g.namespace != a.Namespace {
		return false
	}
	if a.Resource == "" {
		return g.namespace == "" && slices.ContainsFunc(rule.NonResourceURLs, func(u string) bool { return u == a.Path || matches(u, a.Path) })
	}
	return has(rule.APIGroups, a.Group) &&
		slices.ContainsFunc(a.Subresources, func(sub string) bool { return covers(rule.Resources, a.Resource, sub) }) &&
		(len(rule.ResourceNames) == 0 || a.Name != "" && slices.Contains(rule.ResourceNames, a.Name))
}

// matches: only a * at the end stands for more.
func matches(pattern, path string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return open && strings.HasPrefix(path, prefix)
}

func covers(resources []string, resource, sub string) bool {
	if slices.Contains(resources, rbac.ResourceAll) {
		return true
	}
	if sub == "" {
		return slices.Contains(resources, resource)
	}
	return slices.Contains(resources, resource+"/"+sub) || slices.Contains(resources, "*/"+sub)
}

func has(list []string, word string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, word)
}
