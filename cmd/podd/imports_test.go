package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// bans are the borders of the architecture: no package below Of imports, itself
// or through others of podd's, anything below Not.
var bans = []struct{ of, not, why string }{
	{"podd/manifest", "podd/runtime", "what should run knows nothing of what does"},
	{"podd/manifest", "podd/reconcile", "wanted pods are values that anyone may make"},
	{"podd/manifest", "google.golang.org/grpc", "reading a manifest needs no network"},
	{"podd/runtime", "podd/manifest", "what runs is told without knowing what should"},
	{"podd/runtime", "podd/reconcile", "a runtime is asked, it decides nothing"},
	{"podd/reconcile/plan", "podd/manifest/source", "a decision is made from values"},
	{"podd/reconcile/plan", "podd/runtime/cri", "a decision is made from values"},
	{"podd/reconcile/plan", "podd/reconcile/status", "deciding and telling are two things"},
	{"podd/reconcile/status", "podd/manifest/source", "a status is made from values"},
	{"podd/reconcile/status", "podd/runtime/cri", "a status is made from values"},
	{"podd/reconcile/render", "podd/manifest/source", "a config is made from values"},
	{"podd/reconcile/render", "podd/runtime/cri", "a config is made from values"},
	{"podd/reconcile/event", "podd/runtime/cri", "an event is told from values"},
	{"podd/reconcile", "podd/server", "pods run whoever watches"},
	{"podd/reconcile", "podd/cmd", "the core knows no command line"},
	{"podd/server", "podd/manifest", "the faces declare what they read"},
	{"podd/server", "podd/runtime", "the faces declare what they read"},
	{"podd/server", "podd/reconcile", "the faces declare what they read"},
	{addOn, "podd/runtime/cri", "the runtime is the core's"},
	{addOn, "podd/manifest/source", "it is a source, and knows no other"},
	{"podd/", "k8s.io/kubernetes", "the kubelet's code is not podd's"},
}

// leaf is what every package may import, and so imports nothing but the standard
// library: what must outlive a power cut must so in each of them.
const leaf = "podd/manifest/durable"

// addOn talks to a cluster's API server, for the program that has it.
const addOn, program = "podd/cmd/podd/internal/cluster", "podd/cmd/podd"

// direct are imports that a pure package may not write itself: with them it
// could wait, look at the machine, or share what changes.
var direct = map[string][]string{
	"podd/reconcile/plan":   {"context", "os", "net", "sync"},
	"podd/reconcile/status": {"context", "os", "net", "sync"},
	"podd/reconcile/render": {"context", "os", "net", "sync"},
	"podd/reconcile/event":  {"context", "os", "net", "sync"},
}

type listed struct {
	ImportPath    string
	Imports, Deps []string
}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, ban := range bans {
			if !below(p.ImportPath, ban.of) || forTests(p.ImportPath) {
				continue
			}
			for _, dep := range p.Deps {
				if below(dep, ban.not) && !below(dep, ban.of) && dep != leaf {
					t.Errorf("%s imports %s: %s", p.ImportPath, dep, ban.why)
				}
			}
		}
		for _, i := range p.Imports {
			if p.ImportPath == leaf && (below(i, "podd") || strings.Contains(i, ".")) {
				t.Errorf("%s imports %s: it is a leaf", leaf, i)
			}
		}
		clients := p.Deps
		if p.ImportPath == program {
			clients = p.Imports
		}
		for _, i := range clients {
			if below(i, "k8s.io/client-go") && p.ImportPath != addOn && !asksForTests(p.ImportPath) {
				t.Errorf("%s imports %s: only the cluster add-on talks to an API server", p.ImportPath, i)
			}
		}
		for _, banned := range direct[p.ImportPath] {
			for _, i := range p.Imports {
				if i == banned {
					t.Errorf("%s imports %s: it is pure", p.ImportPath, i)
				}
			}
		}
	}
}

// forTests tells whether a package exists for tests.
func forTests(path string) bool { return below(path, "podd/runtime/runtimetest") }

// asksForTests tells whether a package asks an API server for tests or measurements.
func asksForTests(path string) bool {
	return below(path, "podd/cmd/podd/e2e") || below(path, "podd/cmd/podd/bench")
}

func below(path, root string) bool {
	root = strings.TrimSuffix(root, "/")
	return path == root || strings.HasPrefix(path, root+"/")
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "podd/...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading the list of packages: %v", err)
		}
		all = append(all, p)
	}
}
