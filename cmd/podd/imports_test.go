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

// forbiddenImports are the boundaries of the architecture. A package in or below from must
// not import a package in or below to, neither directly nor indirectly.
var forbiddenImports = []struct{ from, to, why string }{
	{"podd/manifest", "podd/runtime", "desired state does not depend on actual state"},
	{"podd/manifest", "podd/reconcile", "desired pods are values that any package may create"},
	{"podd/manifest", "google.golang.org/grpc", "reading a manifest needs no RPC"},
	{"podd/manifest/decode", "podd/manifest/source", "decoding is pure, and sources do I/O"},
	{"podd/manifest/defaults", "podd/manifest/decode", "defaults apply to values"},
	{"podd/manifest/document", "podd/manifest/decode", "a document may be a manifest or a configuration"},
	{"podd/manifest/document", "podd/manifest/schema", "parsing does not depend on the type"},
	{"podd/manifest/schema", "podd/manifest/decode", "a document may be a manifest or a configuration"},
	{"podd/cmd/podd/internal/config", "podd/manifest/decode", "a configuration contains no pods"},
	{"podd/manifest/merge", "podd/manifest/decode", "merging applies to values"},
	{"podd/manifest/merge", "podd/manifest/source", "merging is pure, and sources do I/O"},
	{"podd/manifest/refs", "podd/manifest/decode", "references are found in values"},
	{"podd/manifest/refs", "podd/manifest/source", "references are found in values"},
	{"podd/manifest/supported", "podd/manifest/decode", "the tables apply to values"},
	{"podd/manifest/validate", "podd/manifest/decode", "validation does not depend on the origin of an object"},
	{"podd/runtime", "podd/manifest", "actual state does not depend on desired state"},
	{"podd/runtime", "podd/reconcile", "the runtime client makes no decisions"},
	{"podd/reconcile/plan", "podd/manifest/decode", "decisions are pure"},
	{"podd/reconcile/plan", "podd/manifest/source", "decisions are pure"},
	{"podd/reconcile/plan", "podd/runtime/cri", "decisions are pure"},
	{"podd/reconcile/plan", "podd/reconcile/status", "decisions do not depend on the reported status"},
	{"podd/reconcile/status", "podd/manifest/decode", "a status is computed from values"},
	{"podd/reconcile/status", "podd/manifest/source", "a status is computed from values"},
	{"podd/reconcile/status", "podd/runtime/cri", "a status is computed from values"},
	{"podd/reconcile/admission", "podd/manifest/source", "admission is computed from values"},
	{"podd/reconcile/admission", "podd/runtime/cri", "admission is computed from values"},
	{"podd/reconcile/state", "podd/manifest/source", "a state is computed from values"},
	{"podd/reconcile/state", "podd/runtime/cri", "a state is computed from values"},
	{"podd/reconcile/state", "podd/reconcile/effect", "a state applies results and calls no effect"},
	{"podd/reconcile/state", "podd/reconcile/journal", "a record is a value; package journal stores it"},
	{"podd/reconcile/render", "podd/manifest/decode", "a CRI config is computed from values"},
	{"podd/reconcile/render", "podd/manifest/source", "a CRI config is computed from values"},
	{"podd/reconcile/render", "podd/runtime/cri", "a CRI config is computed from values"},
	{"podd/reconcile/event", "podd/runtime/cri", "events are computed from values"},
	{"podd/reconcile/effect", "podd/runtime/cri", "effects declare the calls that they need"},
	{"podd/reconcile", "podd/server", "pods run without endpoints"},
	{"podd/reconcile", "podd/cmd", "the core does not depend on the command line"},
	{"podd/server", "podd/manifest", "endpoints declare what they read"},
	{"podd/server", "podd/runtime", "endpoints declare what they read"},
	{"podd/server", "podd/reconcile", "endpoints declare what they read"},
	{"podd/server/kube/read", "podd/server/kube/write", "reads change nothing"},
	{"podd/server/kube/write", "podd/server/kube/read", "writes declare how they find objects"},
	{clusterPackage, "podd/runtime/cri", "only the core uses the runtime"},
	{clusterPackage, "podd/manifest/source", "package cluster implements a source and uses no other source"},
	{"podd/cmd/podd/internal/exit", "podd/", "every verb may return an exit code"},
	{"podd/cmd/podd/internal/paths", "podd/", "package paths only handles strings"},
	{"podd/cmd/podd/internal/printer", "podd/", "package printer only prints values"},
	{daemonPackage, "podd/cmd/podd/internal/client", "the daemon is not a client of itself"},
	{"podd/cmd/podd/internal/client", "podd/manifest/source", "verbs get the content of sources from the daemon"},
	{"podd/cmd/podd/internal/cli", "podd/runtime/cri", "verbs use the daemon, not the runtime"},
	{"podd/cmd/podd/internal/cli", "podd/manifest/source", "verbs get the content of sources from the daemon"},
	{"podd/cmd/podd/internal/client", "podd/runtime", "the client uses the daemon, not the runtime"},
	{"podd/cmd/podd/internal/offline", clusterPackage, "offline verbs do not connect to an API server"},
	{"podd/cmd/podd/internal/daemon/view", "podd/cmd/podd/internal/config", "a View is computed from values"},
	{"podd/cmd/podd/internal/daemon/view", "podd/cmd/podd/internal/host", "a View is computed from values"},
	{"podd/cmd/podd/internal/iostreams", "podd/", "every verb uses the streams"},
	{"podd/", "k8s.io/kubernetes", "podd contains no code of the kubelet"},
}

// programPackages import nothing of each other, so that each one can be read alone. They
// share other packages in podd/cmd/podd/internal.
var programPackages = []string{
	daemonPackage,
	"podd/cmd/podd/internal/cli",
	"podd/cmd/podd/internal/offline",
	"podd/cmd/podd/internal/runonce",
}

// programOf returns the programPackage that path is in or below, or "".
func programOf(path string) string {
	for _, p := range programPackages {
		if below(path, p) {
			return p
		}
	}
	return ""
}

// leafPackages are packages that every package may import. They import only the standard
// library and leafImports.
var leafPackages = []string{"podd/runtime/atomicfile", "podd/runtime/safepath", "podd/manifest/redact"}

var leafImports = []string{"golang.org/x/sys/unix", "k8s.io/api/core/v1"}

func isLeaf(path string) bool { return slices.Contains(leafPackages, path) }

// clusterPackage connects to an API server. Only daemonPackage imports it, and only
// mainPackage imports daemonPackage.
const (
	clusterPackage = "podd/cmd/podd/internal/cluster"
	daemonPackage  = "podd/cmd/podd/internal/daemon"
	mainPackage    = "podd/cmd/podd"
)

// pureImports contains for each pure package the packages that it must not import directly.
// With them it could block, read the host or share mutable state.
var pureImports = map[string][]string{
	"podd/manifest":            {"context", "os", "net", "sync"},
	"podd/manifest/defaults":   {"context", "os", "net", "sync"},
	"podd/manifest/decode":     {"context", "os", "net"},
	"podd/manifest/document":   {"context", "os", "net", "sync"},
	"podd/manifest/schema":     {"context", "os", "net", "sync"},
	"podd/manifest/merge":      {"context", "os", "net", "sync"},
	"podd/manifest/refs":       {"context", "os", "sync"}, // net.JoinHostPort reads nothing
	"podd/manifest/supported":  {"context", "os", "net"},
	"podd/manifest/validate":   {"context", "os", "net", "sync"},
	"podd/reconcile/plan":      {"context", "os", "net", "sync", "podd/reconcile/device"},
	"podd/reconcile/admission": {"context", "os", "net", "sync", "podd/reconcile/device"},
	"podd/reconcile/state":     {"context", "os", "net", "sync", "podd/reconcile/device", "podd/reconcile/clock"},
	"podd/reconcile/result":    {"context", "os", "net", "sync"},
	"podd/reconcile/status":    {"context", "os", "net", "sync"},
	"podd/reconcile/render":    {"context", "os", "net", "sync"},
	"podd/reconcile/event":     {"context", "os", "net", "sync"},

	"podd/reconcile/device/allocation": {"context", "os", "net", "sync"},
}

// listedPackage is a package in the output of go list.
type listedPackage struct {
	ImportPath    string
	Imports, Deps []string
}

// TestImports checks the imports of all packages.
func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, rule := range forbiddenImports {
			if !below(p.ImportPath, rule.from) || isForTests(p.ImportPath) {
				continue
			}
			for _, dep := range p.Deps {
				if below(dep, rule.to) && !below(dep, rule.from) && !isLeaf(dep) {
					t.Errorf("%s imports %s, but %s", p.ImportPath, dep, rule.why)
				}
			}
		}
		if from := programOf(p.ImportPath); from != "" {
			for _, dep := range p.Deps {
				if to := programOf(dep); to != "" && to != from {
					t.Errorf("%s imports %s, but they share only other packages", p.ImportPath, dep)
				}
			}
		}
		for _, i := range p.Imports {
			if isLeaf(p.ImportPath) && (below(i, "podd") || strings.Contains(i, ".") && !slices.Contains(leafImports, i)) {
				t.Errorf("%s imports %s, but is a leaf package", p.ImportPath, i)
			}
		}
		imports := p.Deps // also indirect ones
		if p.ImportPath == daemonPackage || p.ImportPath == mainPackage {
			imports = p.Imports
		}
		for _, i := range imports {
			if below(i, "k8s.io/client-go") && p.ImportPath != clusterPackage && !isAPIClientForTests(p.ImportPath) {
				t.Errorf("%s imports %s, but only package cluster connects to an API server", p.ImportPath, i)
			}
		}
		for _, banned := range pureImports[p.ImportPath] {
			for _, i := range p.Imports {
				if i == banned {
					t.Errorf("%s imports %s, but is pure", p.ImportPath, i)
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

// below reports whether path is root or below it.
func below(path, root string) bool {
	root = strings.TrimSuffix(root, "/")
	return path == root || strings.HasPrefix(path, root+"/")
}

// listPackages returns all packages of the module.
func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "podd/...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var all []listedPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading the list of packages: %v", err)
		}
		all = append(all, p)
	}
}
