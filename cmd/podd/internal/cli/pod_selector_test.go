package cli

import (
	"testing"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// TestPodSelector_Find checks that findPod finds a pod by each form of its name in the namespace of -n,
// and the errors for other names.
func TestPodSelector_Find(t *testing.T) {
	podIn := func(namespace, name string) *server.PodView {
		p := poddtest.NewPod("a.yaml", 1, name, "app")
		p.Pod.Namespace = namespace
		return p
	}
	v := poddtest.NewView(podIn("default", "web"), podIn("prod", "web"), podIn("prod", "db"), podIn("prod", "db-n1"), podIn("test", "api"))
	for _, c := range []struct {
		namespace, word, want string
	}{
		{"", "api", "test/api-n1"},
		{"", "api-n1", "test/api-n1"},
		{"", "test/api", "test/api-n1"},
		{"", "pod/api", "test/api-n1"},
		{"prod", "po/web", "prod/web-n1"},
		{"", "pods/wbe", `no pod "wbe"; did you mean "web"?`},
		{"test", "test/api-n1", "test/api-n1"},
		{"prod", "web", "prod/web-n1"},
		{"", "db", "prod/db-n1"},
		{"", "db-n1-n1", "prod/db-n1-n1"},
		{"", "web", `pod name "web" is ambiguous; use default/web-n1 or prod/web-n1`},
		{"", "db-n1", `pod name "db-n1" is ambiguous; use prod/db-n1 or prod/db-n1-n1`},
		{"default", "api", `no pod "api" in namespace default; there is test/api-n1`},
		{"default", "test/api", `pod "test/api" is not in namespace default, to which -n limits this command`},
		{"", "wbe", `no pod "wbe"; did you mean "web"?`},
		{"", "prod/wbe", `no pod "prod/wbe"; did you mean "web"?`},
		{"", "anything", `no pod "anything"; "podd ps" lists all pods`},
		{"", "", `no pod ""; "podd ps" lists all pods`},
		{"", "/", `no pod "/"; "podd ps" lists all pods`},
	} {
		got := ""
		if p, err := (PodSelector{Namespace: c.namespace}).findPod(v, c.word); err != nil {
			got = err.Error()
		} else {
			got = p.Key().String()
		}
		if got != c.want {
			t.Errorf("-n %q, name %q: got %q, want %q", c.namespace, c.word, got, c.want)
		}
	}
	if _, err := (PodSelector{}).findPod(poddtest.NewView(), "web"); err == nil || err.Error() != `no pod "web"; podd has no pods` {
		t.Errorf("podd without pods: got error %v, want one with \"podd has no pods\"", err)
	}
	for _, p := range v.Pods {
		word := podArgument(v, p.Key())
		if found, err := (PodSelector{}).findPod(v, word); err != nil || found != p {
			t.Errorf("result %q of podArgument: findPod returned %v, error %v; want pod %s", word, found, err, p.Key())
		}
	}
}
