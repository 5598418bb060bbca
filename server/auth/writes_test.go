package auth

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	rbac "k8s.io/api/rbac/v1"
)

// TestWrites checks that only root's credential permits writes, even if the policy allows
// everything.
func TestWrites(t *testing.T) {
	root, other := User{Name: "root", Groups: []string{MastersGroup}}, User{Name: "bob", Groups: []string{"ops"}}
	w := WriteAuthorizer{AllowAll{}}
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
		{"create", "certificates.k8s.io", "clustertrustbundles", "", false},
		{"*", "certificates.k8s.io", "*", "", false},
		{"watch", "certificates.k8s.io", "clustertrustbundles", "", true},
		{"create", "storage.k8s.io", "csidrivers", "", false},
		{"watch", "storage.k8s.io", "csidrivers", "", true},
		{"create", "", "pods", "exec", true},
		{"get", "", "pods", "", true},
		{"watch", "", "secrets", "", true},
		{"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", true},
		{"create", "", "nodes", "proxy", true},
		{"patch", "", "pods", "*", false},
	} {
		a := Attributes{Verb: c.verb, Group: c.group, Resource: c.resource, Subresources: []string{c.part}}
		if got := allows(t, w, other, a); got != c.want {
			t.Errorf("%+v: got %v, want %v", a, got, c.want)
		}
		if !allows(t, w, root, a) {
			t.Errorf("%+v: root: got false, want true", a)
		}
	}
	if allows(t, WriteAuthorizer{Policy{}}, other, Attributes{Verb: "get", Resource: "pods", Subresources: []string{""}}) {
		t.Error("a user without permissions: get pods: got true, want false")
	}
}

// wildcards are Authorizers that allow every user to impersonate every identity.
func wildcards() map[string]Authorizer {
	rule := func(verbs, groups, resources []string) Policy {
		return Policy{[]grant{{groups: []string{authenticatedGroup}, rule: rbac.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources}}}}
	}
	all := []string{"*"}
	return map[string]Authorizer{
		"AlwaysAllow":            AllowAll{},
		"a policy with *":        rule(all, all, all),
		"a rule for impersonate": rule([]string{"impersonate"}, []string{""}, []string{"users", "groups", "serviceaccounts"}),
	}
}

// TestWrites_ImpersonatingRoot checks that only a user of system:masters may impersonate that
// group.
func TestWrites_ImpersonatingRoot(t *testing.T) {
	root, bob := User{Name: "root", Groups: []string{MastersGroup}}, User{Name: "bob", Groups: []string{authenticatedGroup}}
	for name, inner := range wildcards() {
		w := WriteAuthorizer{inner}
		for _, c := range []struct {
			verb, group, resource, name string
			want                        bool
		}{
			{"impersonate", "", "groups", MastersGroup, false},
			{"impersonate", "", "groups", "", false},
			{"impersonate", "", "*", "", false},
			{"impersonate", "*", "groups", MastersGroup, false},
			{"*", "", "groups", MastersGroup, false},
			{"*", "*", "*", MastersGroup, false},
			{"impersonate", "", "groups", "ops", true},
			{"impersonate", "", "users", "root", true}, // allowed, because the user name root grants no permissions
			{"impersonate", "", "serviceaccounts", "prom", true},
		} {
			a := Attributes{Verb: c.verb, Group: c.group, Resource: c.resource, Name: c.name, Subresources: []string{""}}
			if got := allows(t, w, bob, a); got != c.want {
				t.Errorf("%s: %+v: got %t, want %t", name, a, got, c.want)
			}
			if name != "a rule for impersonate" && !allows(t, w, root, a) {
				t.Errorf("%s: %+v: root: got false, want true", name, a)
			}
		}
	}
}

// TestProxied_Impersonation checks that, in a cluster, the Authorizer of the cluster authorizes a request
// with impersonation that WriteAuthorizer does not reject.
func TestProxied_Impersonation(t *testing.T) {
	bob := User{Name: "bob"}
	for _, c := range []struct {
		verb, resource, name string
		want                 bool
	}{
		{"impersonate", "groups", MastersGroup, false},
		{"impersonate", "groups", "", false},
		{"*", "groups", "", false},
		{"impersonate", "groups", "ops", false}, // WriteAuthorizer does not reject this request, but onlyNodes does
		{"get", "pods", "", true},
	} {
		a := Attributes{Verb: c.verb, Resource: c.resource, Name: c.name, Subresources: []string{""}}
		if got := allows(t, ProxyAuthorizer{WriteAuthorizer{onlyNodes{}}, "n1"}, bob, a); got != c.want {
			t.Errorf("%+v: got %t, want %t", a, got, c.want)
		}
	}
	if ops := (Attributes{Verb: "impersonate", Resource: "groups", Name: "ops", Subresources: []string{""}}); !allows(t, ProxyAuthorizer{WriteAuthorizer{AllowAll{}}, "n1"}, bob, ops) {
		t.Error("user whom the cluster permits to impersonate group ops: got false, want true")
	}
}

// TestGuard_ImpersonatingRoot checks that impersonation gives a user no permission that needs
// root's credential.
func TestGuard_ImpersonatingRoot(t *testing.T) {
	tokens, err := ParseTokens([]byte("bob,bob,1\nroot,admin,2,system:masters\n"))
	if err != nil {
		t.Fatal(err)
	}
	const add = "/api/v1/namespaces/a/pods/x/ephemeralcontainers"
	for name, inner := range wildcards() {
		for _, ofCluster := range []bool{false, true} {
			g := &Guard{Authenticator: &Authenticator{Tokens: func() Tokens { return tokens }}, Authorizer: WriteAuthorizer{inner}, Node: "n1", InCluster: ofCluster,
				Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
			for _, c := range []struct {
				token, as string
				groups    []string
				want      int
			}{
				{"bob", "", nil, 403},
				{"bob", "x", []string{MastersGroup}, 403},
				{"bob", "root", nil, 403},
				{"bob", "podd-admin", []string{"ops", MastersGroup}, 403},
				{"bob", "system:serviceaccount:a:b", []string{MastersGroup}, 403},
				{"bob", "admin", []string{authenticatedGroup}, 403},
				{"root", "bob", nil, 403},
				{"root", "", nil, 200},
				{"root", "x", []string{MastersGroup}, 200},
			} {
				w, r := httptest.NewRecorder(), httptest.NewRequest("PATCH", add, nil)
				r.Header.Set("Authorization", "Bearer "+c.token)
				if c.as != "" {
					r.Header.Set(userHeader, c.as)
				}
				for _, group := range c.groups {
					r.Header.Add(groupHeader, group)
				}
				if g.ServeHTTP(w, r); w.Code != c.want {
					t.Errorf("%s: %s as %q of %q: got %d %s, want %d", name, c.token, c.as, c.groups, w.Code, w.Body, c.want)
				}
			}
		}
	}
}

// TestWrites_Rules checks that Rules lists exactly the permissions that Allows grants: no writes,
// and all other requests.
func TestWrites_Rules(t *testing.T) {
	bob := User{Name: "bob", Groups: []string{"ops"}}
	ops := func(verbs, groups, resources []string) Policy {
		return Policy{[]grant{{groups: []string{"ops"}, rule: rbac.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources}}}}
	}
	for n, inner := range []Authorizer{
		AllowAll{}, Policy{},
		ops([]string{"*"}, []string{"", "metrics.k8s.io"}, []string{"pods", "pods/exec", "pods/resize", "nodes"}),
		ops([]string{"get", "patch", "create"}, []string{"*"}, []string{"*"}),
		ops([]string{"update"}, []string{""}, []string{"*/ephemeralcontainers", "*/proxy"}),
		ops([]string{"delete"}, []string{""}, []string{"secrets"}),
		ops([]string{"*"}, []string{"certificates.k8s.io", "apps"}, []string{"*"}),
		ops([]string{"impersonate", "get"}, []string{""}, []string{"users", "groups"}),
		Policy{[]grant{{groups: []string{"ops"}, rule: rbac.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ResourceNames: []string{MastersGroup, "dev"}}}}},
		Policy{[]grant{{groups: []string{"ops"}, rule: rbac.PolicyRule{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"}, ResourceNames: []string{MastersGroup}}}}},
	} {
		w := WriteAuthorizer{inner}
		rules, _ := w.Rules(bob, "a")
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			for _, resource := range []string{"clustertrustbundles", "configmaps", "csidrivers", "events", "nodes", "pods", "secrets"} {
				for _, part := range []string{"", "exec", "proxy", "resize", "ephemeralcontainers"} {
					a := Attributes{Verb: verb, Resource: resource, Namespace: "a", Subresources: []string{part}}
					switch resource {
					case "clustertrustbundles":
						a.Group = "certificates.k8s.io"
					case "csidrivers":
						a.Group = "storage.k8s.io"
					}
					listed := anyCovers(rules, a)
					allowed := allows(t, w, bob, a)
					// The rules need not include a combination that the API does not serve.
					isServed := verb == "get" || verb == "list" || verb == "watch" || part == "exec" || part == "proxy" || a.isWrite()
					if listed && !allowed || isServed && allowed && !listed {
						t.Errorf("case %d: %+v: Rules include the request: %t, Allows: %t; want equal results", n, a, listed, allowed)
					}
				}
			}
		}
		for _, resource := range []string{"users", "groups", "serviceaccounts", "secrets"} {
			for _, name := range []string{"", MastersGroup, "dev"} {
				for _, verb := range []string{"impersonate", "get"} {
					a := Attributes{Verb: verb, Resource: resource, Name: name, Namespace: "a", Subresources: []string{""}}
					listed := anyCovers(rules, a)
					allowed := allows(t, w, bob, a)
					// No rule can include all groups except system:masters.
					canList := verb == "impersonate" && (resource != "groups" || name == "dev" && n == 8)
					if listed && !allowed || canList && resource != "secrets" && allowed && !listed {
						t.Errorf("case %d: %+v: Rules include the request: %t, Allows: %t; want equal results", n, a, listed, allowed)
					}
				}
			}
		}
		if root, _ := w.Rules(RootUser(), "a"); !slices.EqualFunc(root, mastersRules, func(a, b rbac.PolicyRule) bool { return slices.Equal(a.Verbs, b.Verbs) }) {
			t.Errorf("case %d: rules of root: got %v, want those of mastersRules", n, root)
		}
	}
	if rules, _ := (WriteAuthorizer{AllowAll{}}).Rules(bob, "a"); len(rules[len(rules)-1].NonResourceURLs) == 0 {
		t.Errorf("got rules %v, want a rule with non-resource URLs", rules)
	}
}
