package auth

import (
	"slices"
	"testing"

	rbac "k8s.io/api/rbac/v1"
)

// Whatever a policy says, only root's credential writes.
func TestWrites(t *testing.T) {
	root, other := User{Name: "root", Groups: []string{Masters}}, User{Name: "bob", Groups: []string{"ops"}}
	w := Writes{All{}}
	for _, c := range []struct {
		verb, group, resource, part string
		want                        bool
	}{
		{"create", "", "pods", "", false},
		{"patch", "", "pods", "resize", false},
		{"patch", "", "pods", "ephemeralcontainers", false},
		{"update", "", "pods", "ephemeralcontainers", false},
		{"*", "", "pods", "ephemeralcontainers", false},
		{"get", "", "pods", "ephemeralcontainers", true},
		{"deletecollection", "", "secrets", "", false},
		{"*", "", "*", "", false},
		{"*", "*", "*", "", false},
		{"update", "", "persistentvolumes", "", false},
		{"create", "", "pods", "exec", true},
		{"get", "", "pods", "", true},
		{"watch", "", "secrets", "", true},
		{"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", true},
		{"create", "", "nodes", "proxy", true},
	} {
		a := Attributes{Verb: c.verb, Group: c.group, Resource: c.resource, Subresources: []string{c.part}}
		if got := allows(t, w, other, a); got != c.want {
			t.Errorf("%+v: got %v, want %v", a, got, c.want)
		}
		if !allows(t, w, root, a) {
			t.Errorf("%+v: root may not", a)
		}
	}
	if allows(t, Writes{Policy{}}, other, Attributes{Verb: "get", Resource: "pods", Subresources: []string{""}}) {
		t.Error("who may nothing may read")
	}
}

// What somebody is told that they may is what they may: no write, and all else.
func TestWritesRules(t *testing.T) {
	bob := User{Name: "bob", Groups: []string{"ops"}}
	ops := func(verbs, groups, resources []string) Policy {
		return Policy{[]grant{{groups: []string{"ops"}, rule: rbac.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources}}}}
	}
	for n, inner := range []Authorizer{
		All{}, Policy{},
		ops([]string{"*"}, []string{"", "metrics.k8s.io"}, []string{"pods", "pods/exec", "pods/resize", "nodes"}),
		ops([]string{"get", "patch", "create"}, []string{"*"}, []string{"*"}),
		ops([]string{"update"}, []string{""}, []string{"*/ephemeralcontainers", "*/proxy"}),
		ops([]string{"delete"}, []string{""}, []string{"secrets"}),
	} {
		w := Writes{inner}
		rules, _ := w.Rules(bob, "a")
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			for _, resource := range []string{"configmaps", "events", "nodes", "pods", "secrets"} {
				for _, part := range []string{"", "exec", "proxy", "resize", "ephemeralcontainers"} {
					a := Attributes{Verb: verb, Resource: resource, Namespace: "a", Subresources: []string{part}}
					told := slices.ContainsFunc(rules, func(r rbac.PolicyRule) bool { return (&grant{rule: r}).covers(a) })
					may := allows(t, w, bob, a)
					// Nothing but these can be written or run.
					real := verb == "get" || verb == "list" || verb == "watch" || part == "exec" || part == "proxy" || a.writes()
					if told && !may || real && may && !told {
						t.Errorf("%d: %+v: told %t, may %t", n, a, told, may)
					}
				}
			}
		}
		if root, _ := w.Rules(Root(), "a"); !slices.EqualFunc(root, mastersRules, func(a, b rbac.PolicyRule) bool { return slices.Equal(a.Verbs, b.Verbs) }) {
			t.Errorf("%d: root may %v", n, root)
		}
	}
	if rules, _ := (Writes{All{}}).Rules(bob, "a"); len(rules[len(rules)-1].NonResourceURLs) == 0 {
		t.Errorf("no paths in %v", rules)
	}
}
