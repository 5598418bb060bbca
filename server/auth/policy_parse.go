package auth

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ParsePolicy parses YAML documents of kind ClusterRole, ClusterRoleBinding, Role
// and RoleBinding of rbac.authorization.k8s.io/v1. It returns an error for an unknown
// field, for any other kind, and for a binding to a role that is not in the text.
func ParsePolicy(text []byte) (Policy, error) {
	file := policyFile{roles: map[roleKey][]rbac.PolicyRule{}}
	documents := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return file.newPolicy()
		}
		if err != nil {
			return Policy{}, err
		}
		if err := file.addDocument(doc); err != nil {
			return Policy{}, fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// A policyFile contains the objects of a policy file.
type policyFile struct {
	roles    map[roleKey][]rbac.PolicyRule
	bindings []rbac.RoleBinding // a ClusterRoleBinding is stored as a RoleBinding without a namespace
}

type roleKey struct{ kind, namespace, name string }

func (f *policyFile) addDocument(doc []byte) error {
	var meta *metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &meta); err != nil {
		return err
	}
	switch {
	case meta == nil: // the document contains only comments
		return nil
	case meta.APIVersion != rbac.SchemeGroupVersion.String():
		return fmt.Errorf("apiVersion %q: must be %s", meta.APIVersion, rbac.SchemeGroupVersion)
	}
	switch meta.Kind {
	case "ClusterRole":
		return f.addClusterRole(doc)
	case "Role":
		return f.addRole(doc)
	case "ClusterRoleBinding":
		var b rbac.ClusterRoleBinding
		if err := yaml.UnmarshalStrict(doc, &b); err != nil {
			return err
		}
		f.bindings = append(f.bindings, rbac.RoleBinding{TypeMeta: b.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: b.Name}, Subjects: b.Subjects, RoleRef: b.RoleRef})
		return nil
	case "RoleBinding":
		var b rbac.RoleBinding
		if err := yaml.UnmarshalStrict(doc, &b); err != nil {
			return err
		}
		if b.Namespace == "" {
			return fmt.Errorf("RoleBinding %q: metadata.namespace is missing", b.Name)
		}
		f.bindings = append(f.bindings, b)
		return nil
	}
	return fmt.Errorf("kind %q: must be ClusterRole, ClusterRoleBinding, Role or RoleBinding", meta.Kind)
}

func (f *policyFile) addClusterRole(doc []byte) error {
	var role rbac.ClusterRole
	if err := yaml.UnmarshalStrict(doc, &role); err != nil {
		return err
	}
	if role.AggregationRule != nil {
		return fmt.Errorf("ClusterRole %q: aggregationRule is not supported; list the rules instead", role.Name)
	}
	return f.add(roleKey{"ClusterRole", "", role.Name}, role.Rules)
}

func (f *policyFile) addRole(doc []byte) error {
	var role rbac.Role
	if err := yaml.UnmarshalStrict(doc, &role); err != nil {
		return err
	}
	if role.Namespace == "" {
		return fmt.Errorf("role %q: metadata.namespace is missing", role.Name)
	}
	return f.add(roleKey{"Role", role.Namespace, role.Name}, role.Rules)
}

func (f *policyFile) add(key roleKey, rules []rbac.PolicyRule) error {
	if _, isDuplicate := f.roles[key]; isDuplicate {
		return fmt.Errorf("%s %q is defined twice; remove one", key.kind, key.name)
	}
	f.roles[key] = rules
	return nil
}

// newPolicy returns the policy. It returns an error if a role that a binding refers to is
// missing.
func (f *policyFile) newPolicy() (Policy, error) {
	var p Policy
	for _, b := range f.bindings {
		key := roleKey{kind: b.RoleRef.Kind, name: b.RoleRef.Name}
		if key.kind == "Role" {
			key.namespace = b.Namespace
		}
		rules, ok := f.roles[key]
		if !ok {
			return Policy{}, fmt.Errorf("%s %q: role not found: %s %q; add it to the same file", b.Kind, b.Name, key.kind, key.name)
		}
		users, groups, err := subjectNames(b.Subjects)
		if err != nil {
			return Policy{}, fmt.Errorf("%s %q: %w", b.Kind, b.Name, err)
		}
		for _, rule := range rules {
			p.grants = append(p.grants, grant{rule, b.Namespace, users, groups})
		}
	}
	return p, nil
}

// subjectNames returns the names of the users, including service accounts, and of the groups.
func subjectNames(subjects []rbac.Subject) (users, groups []string, err error) {
	for _, s := range subjects {
		switch s.Kind {
		case rbac.UserKind:
			users = append(users, s.Name)
		case rbac.GroupKind:
			groups = append(groups, s.Name)
		case rbac.ServiceAccountKind:
			users = append(users, "system:serviceaccount:"+s.Namespace+":"+s.Name)
		default:
			return nil, nil, fmt.Errorf("unsupported subject kind %q; use User, Group or ServiceAccount", s.Kind)
		}
	}
	return users, groups, nil
}
