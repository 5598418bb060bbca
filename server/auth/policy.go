package auth

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Authorizer tells whether a user may. It must be safe for concurrent use.
type Authorizer interface{ Allows(User, Attributes) bool }

// All allows everything to everyone who is known.
type All struct{}

// Allows implements Authorizer.
func (All) Allows(User, Attributes) bool { return true }

// Policy allows what cluster roles and their bindings do, and everything to
// system:masters. The zero Policy allows nothing else.
type Policy struct{ grants []grant }

// grant is a rule with those whom it is bound to.
type grant struct {
	rule   rbac.PolicyRule
	users  []string
	groups []string
}

var _ Authorizer = Policy{}

// ParsePolicy reads YAML documents of kind ClusterRole and ClusterRoleBinding,
// rbac.authorization.k8s.io/v1, as one would give them to a cluster. An unknown
// field, another kind and a role that is bound and not there are errors.
func ParsePolicy(text []byte) (Policy, error) {
	roles := map[string][]rbac.PolicyRule{}
	var bindings []rbac.ClusterRoleBinding
	documents := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return bind(roles, bindings)
		}
		if err != nil {
			return Policy{}, err
		}
		if err := parseDocument(doc, roles, &bindings); err != nil {
			return Policy{}, fmt.Errorf("document %d: %w", n, err)
		}
	}
}

func parseDocument(doc []byte, roles map[string][]rbac.PolicyRule, bindings *[]rbac.ClusterRoleBinding) error {
	var meta *metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &meta); err != nil {
		return err
	}
	switch {
	case meta == nil: // nothing but comments
		return nil
	case meta.APIVersion != rbac.SchemeGroupVersion.String():
		return fmt.Errorf("apiVersion %q: want %s", meta.APIVersion, rbac.SchemeGroupVersion)
	}
	switch meta.Kind {
	case "ClusterRole":
		var role rbac.ClusterRole
		if err := yaml.UnmarshalStrict(doc, &role); err != nil {
			return err
		}
		if role.AggregationRule != nil {
			return fmt.Errorf("ClusterRole %q: aggregationRule is not served; write its rules out", role.Name)
		}
		if _, twice := roles[role.Name]; twice {
			return fmt.Errorf("ClusterRole %q is there twice", role.Name)
		}
		roles[role.Name] = role.Rules
	case "ClusterRoleBinding":
		var binding rbac.ClusterRoleBinding
		if err := yaml.UnmarshalStrict(doc, &binding); err != nil {
			return err
		}
		*bindings = append(*bindings, binding)
	default:
		return fmt.Errorf("kind %q: want ClusterRole or ClusterRoleBinding; nodes are in no namespace", meta.Kind)
	}
	return nil
}

func bind(roles map[string][]rbac.PolicyRule, bindings []rbac.ClusterRoleBinding) (Policy, error) {
	var p Policy
	for _, b := range bindings {
		rules, ok := roles[b.RoleRef.Name]
		if b.RoleRef.Kind != "ClusterRole" || !ok {
			return Policy{}, fmt.Errorf("ClusterRoleBinding %q: there is no %s %q beside it", b.Name, b.RoleRef.Kind, b.RoleRef.Name)
		}
		var users, groups []string
		for _, s := range b.Subjects {
			switch s.Kind {
			case rbac.UserKind:
				users = append(users, s.Name)
			case rbac.GroupKind:
				groups = append(groups, s.Name)
			case rbac.ServiceAccountKind:
				users = append(users, "system:serviceaccount:"+s.Namespace+":"+s.Name)
			default:
				return Policy{}, fmt.Errorf("ClusterRoleBinding %q: a subject of kind %q; want User, Group or ServiceAccount", b.Name, s.Kind)
			}
		}
		for _, rule := range rules {
			p.grants = append(p.grants, grant{rule, users, groups})
		}
	}
	return p, nil
}

// Allows implements Authorizer.
func (p Policy) Allows(u User, a Attributes) bool {
	if slices.Contains(u.Groups, Masters) {
		return true
	}
	for _, sub := range a.Subresources {
		if slices.ContainsFunc(p.grants, func(g grant) bool { return g.to(u) && grants(&g.rule, a, sub) }) {
			return true
		}
	}
	return false
}

func (g *grant) to(u User) bool {
	return slices.Contains(g.users, u.Name) ||
		slices.ContainsFunc(u.Groups, func(name string) bool { return slices.Contains(g.groups, name) })
}

// grants is RBAC's matching of a rule, for nodes/sub.
func grants(rule *rbac.PolicyRule, a Attributes, sub string) bool {
	return has(rule.Verbs, a.Verb) && has(rule.APIGroups, "") &&
		slices.ContainsFunc(rule.Resources, func(r string) bool {
			return r == rbac.ResourceAll || r == "nodes/"+sub || r == "*/"+sub
		}) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Node))
}

func has(list []string, word string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, word)
}

// String tells of u without anything secret.
func (u User) String() string {
	if len(u.Groups) == 0 {
		return u.Name
	}
	return u.Name + " (" + strings.Join(u.Groups, ", ") + ")"
}
