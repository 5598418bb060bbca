package configsource

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/apiserver"
)

// describeSource returns the fields of a Source except ResourceVersion.
func describeSource(s Source) string {
	return fmt.Sprintf("%s/%s/%s %s %q %s", s.Namespace, s.Name, s.Key, s.UID, s.Data, s.Err)
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"a/b", `a/b/kubelet  "" `},
		{"a/b.c/d_e", `a/b.c/d_e  "" `},
		{"", `"": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`},
		{"a", `"a": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`},
		{"a/b/c/d", `"a/b/c/d": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`},
		{"a.b/c", `"a.b/c": invalid namespace: `},
		{"/b", `"/b": invalid namespace: `},
		{"a/", `"a/": invalid name: `},
		{"a/B", `"a/B": invalid name: `},
		{"a/b/", `"a/b/": invalid key: `},
		{"a/b/..", `"a/b/..": invalid key: `},
		{"a/b c/d", `"a/b c/d": invalid name: `},
		{strings.Repeat("\n", 1000), `"` + strings.Repeat(" ", apiserver.MaxMessageBytes) + `…": must be `},
	} {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{Annotation: c.value}}}
		s := parse(n)
		if want := `//  "" annotation podd/config-source of node n1: ` + c.want; s.Err != "" && !strings.HasPrefix(describeSource(s), want) {
			t.Errorf("%q: got %q, want %q", c.value, describeSource(s), want)
		}
		if s.Err == "" && describeSource(s) != c.want {
			t.Errorf("%q: got %q, want %q", c.value, describeSource(s), c.want)
		}
	}
}
