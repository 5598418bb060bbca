package auth

import "testing"

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
		if got := w.Allows(other, a); got != c.want {
			t.Errorf("%+v: got %v, want %v", a, got, c.want)
		}
		if !w.Allows(root, a) {
			t.Errorf("%+v: root may not", a)
		}
	}
	if (Writes{Policy{}}).Allows(other, Attributes{Verb: "get", Resource: "pods", Subresources: []string{""}}) {
		t.Error("who may nothing may read")
	}
}
