package auth

import (
	"cmp"
	"slices"

	rbac "k8s.io/api/rbac/v1"
)

// proxiedResources are the resources for which Guard requires permission for nodes/proxy. The list
// does not contain "*", because "*" would include the subresources of nodes that stand for paths of
// the kubelet's API, such as nodes/metrics.
var proxiedResources = []string{
	"clustertrustbundles", "configmaps", "csidrivers", "events", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods", "secrets",
	"*/attach", "*/exec", "pods/log", "*/portforward", "*/proxy", "*/status",
}

var readVerbs = []string{"get", "list", "watch"}

// Rules implements Authorizer. For a user other than root, the rules include only requests
// that Allows permits. They do not include Secrets that a rule of the wrapped Authorizer
// names individually.
func (p ProxyAuthorizer) Rules(u User, namespace string) ([]rbac.PolicyRule, error) {
	rules, err := p.Authorizer.Rules(u, namespace)
	if u.mayWrite() {
		return rules, err
	}
	allNamespaceRules, allNamespacesErr := p.Authorizer.Rules(u, "")
	showsSecrets := p.rulesShowSecrets(u, namespace, rules, allNamespaceRules)
	var proxyRules []rbac.PolicyRule
	for _, rule := range withoutWrites(p.proxyRule(allNamespaceRules)) {
		if showsSecrets {
			proxyRules = append(proxyRules, rule)
		} else {
			proxyRules = append(proxyRules, withoutSecrets(&rule)...)
		}
	}
	result := append(unproxiedRules(rules), p.kubeletRules(allNamespaceRules)...)
	return append(result, completeRules(proxyRules, &rbac.PolicyRule{})...), cmp.Or(err, allNamespacesErr)
}

// unproxiedRules returns rules for the requests that Guard authorizes with their own
// attributes: impersonation and paths that are not resources.
func unproxiedRules(rules []rbac.PolicyRule) []rbac.PolicyRule {
	var result []rbac.PolicyRule
	for i := range rules {
		rule := rules[i]
		if containsOrWildcard(rule.Verbs, impersonateVerb) {
			rule.Verbs = []string{impersonateVerb}
		} else {
			rule.Verbs = nil
		}
		result = append(result, completeRules([]rbac.PolicyRule{rule}, &rules[i])...)
	}
	return result
}

// kubeletRules returns rules for the subresources of nodes that correspond to paths of the kubelet's
// API, such as nodes/metrics for /metrics. The parameter rules contains the user's rules. A returned
// rule includes a verb if the user's rules permit the access that Guard requires for these paths.
func (p ProxyAuthorizer) kubeletRules(rules []rbac.PolicyRule) []rbac.PolicyRule {
	var result []rbac.PolicyRule
	for _, path := range pathSubresources {
		rule := rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/" + path.subresource}}
		for _, verb := range []string{"get", "create"} {
			a := Attributes{Verb: verb, Resource: "nodes", Subresources: []string{path.subresource}}
			if attributes, _ := a.kubeletAttributes(p.Node); anyCovers(rules, attributes) {
				rule.Verbs = append(rule.Verbs, verb)
			}
		}
		isListed := slices.ContainsFunc(result, func(r rbac.PolicyRule) bool { return r.Resources[0] == rule.Resources[0] })
		if len(rule.Verbs) > 0 && !isListed {
			result = append(result, rule)
		}
	}
	return result
}

// proxyRule returns a rule for proxiedResources. The rule has the verbs that the given rules allow
// for the subresource proxy of the node. If they allow get, the rule has all readVerbs.
func (p ProxyAuthorizer) proxyRule(rules []rbac.PolicyRule) *rbac.PolicyRule {
	rule := &rbac.PolicyRule{APIGroups: []string{rbac.APIGroupAll}, Resources: slices.Clone(proxiedResources)}
	for _, verb := range append([]string{"get"}, writeVerbs...) {
		switch {
		case !anyCovers(rules, Attributes{Verb: verb, Resource: "nodes", Name: p.Node, Subresources: []string{"proxy"}}):
		case verb == "get":
			rule.Verbs = append(rule.Verbs, readVerbs...)
		default:
			rule.Verbs = append(rule.Verbs, verb)
		}
	}
	return rule
}

// rulesShowSecrets reports whether u may read the data of all Secrets of a namespace, under the
// conditions of MayReadSecret. The parameter rules contains the user's rules in the namespace, and
// allNamespaceRules contains the user's rules that apply to all namespaces.
func (p ProxyAuthorizer) rulesShowSecrets(u User, namespace string, rules, allNamespaceRules []rbac.PolicyRule) bool {
	return !u.IsForwarded && (u.isRoot() ||
		anyCovers(allNamespaceRules, Attributes{Verb: "create", Resource: "nodes", Name: p.Node, Subresources: []string{"proxy"}}) ||
		anyCovers(rules, Attributes{Verb: "get", Resource: "secrets", Namespace: namespace, Subresources: []string{""}}))
}

// anyCovers reports whether at least one of the rules allows the request a.
func anyCovers(rules []rbac.PolicyRule, a Attributes) bool {
	return slices.ContainsFunc(rules, func(r rbac.PolicyRule) bool { return (&grant{rule: r}).covers(a) })
}

// readsSecrets reports whether the attributes include the reading of Secrets. A wildcard includes
// every verb, resource or subresource.
func (a *Attributes) readsSecrets() bool {
	return a.isInCoreGroup() && (a.Resource == "secrets" || a.Resource == rbac.ResourceAll) &&
		(slices.Contains(readVerbs, a.Verb) || a.Verb == rbac.VerbAll) &&
		(slices.Contains(a.Subresources, "") || slices.Contains(a.Subresources, rbac.ResourceAll))
}

// withoutSecrets returns rules that allow everything that r allows except the reading of
// Secrets. The resources of r must not contain a wildcard.
func withoutSecrets(r *rbac.PolicyRule) []rbac.PolicyRule {
	isCoreGroup := func(group string) bool { return group == "" || group == rbac.APIGroupAll }
	isReadVerb := func(v string) bool { return v == rbac.VerbAll || slices.Contains(readVerbs, v) }
	isSecrets := func(resource string) bool { return resource == "secrets" }
	if !slices.ContainsFunc(r.APIGroups, isCoreGroup) || !slices.ContainsFunc(r.Verbs, isReadVerb) || !slices.ContainsFunc(r.Resources, isSecrets) {
		return []rbac.PolicyRule{*r}
	}
	otherGroups, otherVerbs, otherResources := *r, *r, *r
	otherGroups.APIGroups = slices.DeleteFunc(slices.Clone(r.APIGroups), isCoreGroup)
	otherVerbs.Verbs = removeMatching(r.Verbs, rbac.VerbAll, isReadVerb, append([]string{impersonateVerb}, writeVerbs...))
	otherResources.Resources = slices.DeleteFunc(slices.Clone(r.Resources), isSecrets)
	return completeRules([]rbac.PolicyRule{otherGroups, otherVerbs, otherResources}, r)
}
