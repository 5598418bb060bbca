package daemon

import (
	"strings"
	"testing"

	"podd/cmd/podd/internal/nodename"
)

// TestNodeNamer_Accept checks that a node of a cluster keeps its name, because its credential
// is valid for that name only.
func TestNodeNamer_Accept(t *testing.T) {
	for _, inCluster := range []bool{false, true} {
		n := &nodeNamer{root: t.TempDir(), record: nodename.Record{Name: "old"}, configured: "new", cloud: "external", inCluster: inCluster, renamed: make(chan string, 1)}
		message, err := n.accept()
		stored, rerr := nodename.Read(n.root)
		if rerr != nil {
			t.Fatal(rerr)
		}
		problem := n.problem("new").Message
		if !inCluster {
			if err != nil || stored.Name != "new" || !strings.Contains(problem, "podd accept node-name") {
				t.Errorf("alone: got %q, %v, stored %q, problem %q", message, err, stored.Name, problem)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "--hostname-override=new") || stored.Name != "" || !strings.Contains(problem, "--hostname-override=new") {
			t.Errorf("in a cluster: got %q, %v, stored %q, problem %q", message, err, stored.Name, problem)
		}
	}
}
