package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// forbiddenImports are the boundaries of the architecture: no package below of imports a
// package below not, directly or indirectly.
var forbiddenImports = []struct{ of, not, why string }{
	{"podd/manifest", "podd/runtime", "what should run knows nothing of what does"},
	{"podd/manifest", "podd/reconcile", "wanted pods are values that anyone may make"},
	{"podd/manifest", "google.golang.org/grpc", "reading a manifest needs no network"},
	{"podd/manifest/decode", "podd/manifest/source", "decoding is pure, watching is not"},
	{"podd/manifest/defaults", "podd/manifest/decode", "defaults are set in values"},
	{"podd/manifest/merge", "podd/manifest/decode", "only values are merged"},
	{"podd/manifest/merge", "podd/manifest/source", "merging is pure, watching is not"},
	{"podd/manifest/refs", "podd/manifest/decode", "references are looked up in values"},
	{"podd/manifest/refs", "podd/manifest/source", "references are looked up in values"},
	{"podd/manifest/supported", "podd/manifest/decode", "the tables know no text"},
	{"podd/manifest/validate", "podd/manifest/decode", "an object is validated wherever it comes from"},
	{"podd/runtime", "podd/manifest", "what runs is told without knowing what should"},
	{"podd/runtime", "podd/reconcile", "a runtime is asked, it decides nothing"},
	{"podd/reconcile/plan", "podd/manifest/decode", "a decision is made from values"},
	{"podd/reconcile/plan", "podd/manifest/source", "a decision is made from values"},
	{"podd/reconcile/plan", "podd/runtime/cri", "a decision is made from values"},
	{"podd/reconcile/plan", "podd/reconcile/status", "deciding and telling are two things"},
	{"podd/reconcile/status", "podd/manifest/decode", "a status is made from values"},
	{"podd/reconcile/status", "podd/manifest/source", "a status is made from values"},
	{"podd/reconcile/status", "podd/runtime/cri", "a status is made from values"},
	{"podd/reconcile/admission", "podd/manifest/source", "admission is decided from values"},
	{"podd/reconcile/admission", "podd/runtime/cri", "admission is decided from values"},
	{"podd/reconcile/state", "podd/manifest/source", "a state is computed from values"},
	{"podd/reconcile/state", "podd/runtime/cri", "a state is computed from values"},
	{"podd/reconcile/state", "podd/reconcile/effect", "a state has the results of effects, and calls none"},
	{"podd/reconcile/state", "podd/reconcile/journal", "a record is a value; package journal stores it"},
	{"podd/reconcile/render", "podd/manifest/decode", "a config is made from values"},
	{"podd/reconcile/render", "podd/manifest/source", "a config is made from values"},
	{"podd/reconcile/render", "podd/runtime/cri", "a config is made from values"},
	{"podd/reconcile/event", "podd/runtime/cri", "an event is told from values"},
	{"podd/reconcile/effect", "podd/runtime/cri", "an effect declares the calls that it needs"},
	{"podd/reconcile", "podd/server", "pods run whoever watches"},
	{"podd/reconcile", "podd/cmd", "the core knows no command line"},
	{"podd/server", "podd/manifest", "the faces declare what they read"},
	{"podd/server", "podd/runtime", "the faces declare what they read"},
	{"podd/server", "podd/reconcile", "the faces declare what they read"},
	{"podd/server/kube/read", "podd/server/kube/write", "a read changes nothing"},
	{"podd/server/kube/write", "podd/server/kube/read", "a write declares how it finds objects"},
	{clusterPackage, "podd/runtime/cri", "the runtime is the core's"},
	{clusterPackage, "podd/manifest/source", "it is a source, and knows no other"},
	{"podd/cmd/podd/internal/exit", "podd/", "every verb may return an exit code"},
	{"podd/cmd/podd/internal/paths", "podd/", "paths are strings"},
	{"podd/cmd/podd/internal/cli/printer", "podd/", "it prints strings"},
	{"podd/cmd/podd/internal/cli", daemonPackage, "it asks the daemon on its socket"},
	{daemonPackage, "podd/cmd/podd/internal/cli/client", "it serves clients, and is none"},
	{"podd/cmd/podd/internal/cli", "podd/runtime/cri", "it asks podd, not the runtime"},
	{"podd/cmd/podd/internal/cli", "podd/manifest/source", "it asks podd what the sources have"},
	{"podd/cmd/podd/internal/cli/client", "podd/runtime", "it asks podd, not the runtime"},
	{"podd/cmd/podd/internal/offline", clusterPackage, "an API server is not asked offline"},
	{"podd/cmd/podd/internal/daemon/view", "podd/cmd/podd/internal/config", "a View is made from values"},
	{"podd/cmd/podd/internal/daemon/view", "podd/cmd/podd/internal/host", "a View is made from values"},
	{"podd/cmd/podd/internal/iostreams", "podd/", "every verb has streams"},
	{"podd/", "k8s.io/kubernetes", "the kubelet's code is not podd's"},
}

// leafPackages may be imported by all packages, because their functions must not be
// implemented twice. They import only the standard library and leafImports.
var leafPackages = []string{"podd/runtime/atomicfile", "podd/runtime/safepath", "podd/manifest/redact"}

var leafImports = []string{"golang.org/x/sys/unix", "k8s.io/api/core/v1"}

func isLeaf(path string) bool { return slices.Contains(leafPackages, path) }

// clusterPackage talks to an API server; only daemonPackage imports it, and only
// mainPackage imports that.
const (
	clusterPackage = "podd/cmd/podd/internal/cluster"
	daemonPackage  = "podd/cmd/podd/internal/daemon"
	mainPackage    = "podd/cmd/podd"
)

// pureImports are packages that a pure package must not import directly, because with
// them it could block, read the host or share mutable state.
var pureImports = map[string][]string{
	"podd/manifest":            {"context", "os", "net", "sync"},
	"podd/manifest/defaults":   {"context", "os", "net", "sync"},
	"podd/manifest/decode":     {"context", "os", "net"},
	"podd/manifest/merge":      {"context", "os", "net", "sync"},
	"podd/manifest/refs":       {"context", "os", "sync"}, // net.JoinHostPort reads nothing
	"podd/manifest/supported":  {"context", "os", "net"},
	"podd/manifest/validate":   {"context", "os", "net", "sync"},
	"podd/reconcile/plan":      {"context", "os", "net", "sync"},
	"podd/reconcile/admission": {"context", "os", "net", "sync"},
	"podd/reconcile/state":     {"context", "os", "net", "sync"},
	"podd/reconcile/status":    {"context", "os", "net", "sync"},
	"podd/reconcile/render":    {"context", "os", "net", "sync"},
	"podd/reconcile/event":     {"context", "os", "net", "sync"},
}

type listed struct {
	ImportPath    string
	Imports, Deps []string
}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, ban := range forbiddenImports {
			if !below(p.ImportPath, ban.of) || isForTests(p.ImportPath) {
				continue
			}
			for _, dep := range p.Deps {
				if below(dep, ban.not) && !below(dep, ban.of) && !isLeaf(dep) {
					t.Errorf("%s imports %s: %s", p.ImportPath, dep, ban.why)
				}
			}
		}
		for _, i := range p.Imports {
			if isLeaf(p.ImportPath) && (below(i, "podd") || strings.Contains(i, ".") && !slices.Contains(leafImports, i)) {
				t.Errorf("%s imports %s: it is a leaf", p.ImportPath, i)
			}
		}
		clients := p.Deps
		if p.ImportPath == daemonPackage || p.ImportPath == mainPackage {
			clients = p.Imports
		}
		for _, i := range clients {
			if below(i, "k8s.io/client-go") && p.ImportPath != clusterPackage && !isAPIClientForTests(p.ImportPath) {
				t.Errorf("%s imports %s: only the cluster add-on talks to an API server", p.ImportPath, i)
			}
		}
		for _, banned := range pureImports[p.ImportPath] {
			for _, i := range p.Imports {
				if i == banned {
					t.Errorf("%s imports %s: it is pure", p.ImportPath, i)
				}
			}
		}
	}
}

// isForTests reports whether a package exists only for tests.
func isForTests(path string) bool {
	return below(path, "podd/runtime/runtimetest") || below(path, "podd/server/kube/kubetest") || below(path, "podd/manifest/manifesttest")
}

// isAPIClientForTests reports whether a package connects to an API server in tests or
// benchmarks.
func isAPIClientForTests(path string) bool {
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
