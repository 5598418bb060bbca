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

// forbiddenImports contains the boundaries between packages. The package in the field importer, and the
// packages below it, must not import the package in the field forbidden, or a package below it. This
// includes indirect imports. The field reason completes the sentence "this is forbidden because …".
var forbiddenImports = []struct{ importer, forbidden, reason string }{
	{"podd/manifest", "podd/runtime", "desired state does not depend on actual state"},
	{"podd/manifest", "podd/reconcile", "desired pods do not depend on the code that runs them"},
	{"podd/manifest", "google.golang.org/grpc", "reading a manifest sends no RPC"},
	{"podd/manifest/decode", "podd/manifest/source", "decoding is pure, but sources do I/O"},
	{"podd/manifest/defaults", "podd/manifest/decode", "defaults are set in objects that are already decoded"},
	{"podd/manifest/document", "podd/manifest/decode", "a configuration file also consists of documents, but contains no pods"},
	{"podd/manifest/document", "podd/manifest/schema", "parsing a document does not depend on its schema"},
	{"podd/manifest/schema", "podd/manifest/decode", "a schema may also describe a configuration file, which contains no pods"},
	{"podd/cmd/podd/internal/config", "podd/manifest/decode", "a configuration file contains no pods"},
	{"podd/manifest/merge", "podd/manifest/decode", "only pods that are already decoded are merged"},
	{"podd/manifest/merge", "podd/manifest/source", "merging is pure, but sources do I/O"},
	{"podd/manifest/refs", "podd/manifest/decode", "references are found in pods that are already decoded"},
	{"podd/manifest/refs", "podd/manifest/source", "references are found in pods that are already decoded"},
	{"podd/manifest/supported", "podd/manifest/decode", "the tables describe objects that are already decoded"},
	{"podd/manifest/validate", "podd/manifest/decode", "validation does not depend on the origin of an object"},
	{"podd/runtime", "podd/manifest", "actual state does not depend on desired state"},
	{"podd/runtime", "podd/reconcile", "the runtime client only carries out decisions"},
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
	{"podd/reconcile/state", "podd/reconcile/effect", "a state applies the results of effects, but calls no effects"},
	{"podd/reconcile/state", "podd/reconcile/journal", "a state returns records, and package journal stores the records"},
	{"podd/reconcile/render", "podd/manifest/decode", "a CRI config is computed from values"},
	{"podd/reconcile/render", "podd/manifest/source", "a CRI config is computed from values"},
	{"podd/reconcile/render", "podd/runtime/cri", "a CRI config is computed from values"},
	{"podd/reconcile/event", "podd/runtime/cri", "events are computed from values"},
	{"podd/reconcile/effect", "podd/runtime/cri", "effects declare an interface with the calls that they need"},
	{"podd/reconcile", "podd/server", "pods also run without endpoints"},
	{"podd/reconcile", "podd/cmd", "the core does not depend on the command line"},
	{"podd/server", "podd/manifest", "endpoints declare interfaces for the state that they read"},
	{"podd/server", "podd/runtime", "endpoints declare interfaces for the state that they read"},
	{"podd/server", "podd/reconcile", "endpoints declare interfaces for the state that they read"},
	{"podd/server/kube/read", "podd/server/kube/write", "a read changes no state"},
	{"podd/server/kube/write", "podd/server/kube/read", "writes declare an interface that finds objects"},
	{clusterPackage, "podd/runtime/cri", "only the core uses the runtime"},
	{clusterPackage, "podd/manifest/source", "package cluster implements a source and uses no other source"},
	{"podd/cmd/podd/internal/exit", "podd/", "all verbs import package exit, which must not depend on them"},
	{"podd/cmd/podd/internal/paths", "podd/", "package paths only handles strings"},
	{"podd/cmd/podd/internal/printer", "podd/", "package printer does not depend on the values that it prints"},
	{daemonPackage, "podd/cmd/podd/internal/client", "the daemon sends no requests to itself"},
	{"podd/cmd/podd/internal/client", "podd/manifest/source", "verbs get the content of sources from the daemon"},
	{"podd/cmd/podd/internal/cli", "podd/runtime/cri", "verbs use the daemon, not the runtime"},
	{"podd/cmd/podd/internal/cli", "podd/manifest/source", "verbs get the content of sources from the daemon"},
	{"podd/cmd/podd/internal/client", "podd/runtime", "the client uses the daemon, not the runtime"},
	{"podd/cmd/podd/internal/offline", clusterPackage, "offline verbs do not connect to an API server"},
	{"podd/cmd/podd/internal/daemon/view", "podd/cmd/podd/internal/config", "a View is computed from values"},
	{"podd/cmd/podd/internal/daemon/view", "podd/cmd/podd/internal/host", "a View is computed from values"},
	{"podd/cmd/podd/internal/iostreams", "podd/", "all verbs import package iostreams, which must not depend on them"},
	{"podd/", "k8s.io/kubernetes", "podd contains no code of the kubelet"},
}

// programPackages are the parts of podd that must not import each other, so that a reader can
// understand each of them without the others. The code that they share is in other packages of
// podd/cmd/podd/internal.
var programPackages = []string{
	daemonPackage,
	"podd/cmd/podd/internal/cli",
	"podd/cmd/podd/internal/offline",
	"podd/cmd/podd/internal/runonce",
}

// programOf returns the package in programPackages that is path or contains path. It returns "" if
// there is none.
func programOf(path string) string {
	for _, p := range programPackages {
		if isBelow(path, p) {
			return p
		}
	}
	return ""
}

// leafPackages are packages that every package may import, even if forbiddenImports forbids the import.
// A leaf package itself may import only the standard library and leafImports.
var leafPackages = []string{"podd/runtime/atomicfile", "podd/runtime/bootid", "podd/runtime/flock", "podd/runtime/inotify", "podd/runtime/oomscore", "podd/runtime/safepath", "podd/manifest/condition", "podd/manifest/lazyregexp", "podd/manifest/redact", "podd/manifest/order", "podd/manifest/volumeplugin"}

var leafImports = []string{"github.com/fsnotify/fsnotify", "golang.org/x/sys/unix", "k8s.io/api/core/v1"}

// isLeaf reports whether path is a leaf package.
func isLeaf(path string) bool { return slices.Contains(leafPackages, path) }

// clusterPackage and the packages below it are the only packages that connect to an API server. Only
// daemonPackage imports clusterPackage, and only mainPackage imports daemonPackage.
const (
	clusterPackage = "podd/cmd/podd/internal/cluster"
	daemonPackage  = "podd/cmd/podd/internal/daemon"
	mainPackage    = "podd/cmd/podd"
)

// pureImports maps each pure package to the packages that it must not import directly. With one of
// these imports, the functions of the pure package could block, read the state of the host or share
// mutable state.
var pureImports = map[string][]string{
	"podd/manifest":            {"context", "os", "net", "sync"},
	"podd/manifest/defaults":   {"context", "os", "net", "sync"},
	"podd/manifest/decode":     {"context", "os", "net"},
	"podd/manifest/document":   {"context", "os", "net", "sync"},
	"podd/manifest/schema":     {"context", "os", "net", "sync"},
	"podd/manifest/merge":      {"context", "os", "net", "sync"},
	"podd/manifest/refs":       {"context", "os", "sync"}, // package net is allowed for net.JoinHostPort, which does no I/O
	"podd/manifest/supported":  {"context", "os", "net"},
	"podd/manifest/validate":   {"context", "os", "net", "sync"},
	"podd/reconcile/plan":      {"context", "os", "net", "sync", "podd/reconcile/device"},
	"podd/reconcile/admission": {"context", "os", "net", "sync", "podd/reconcile/device"},
	"podd/reconcile/state":     {"context", "os", "net", "sync", "podd/reconcile/device", "podd/reconcile/clock"},
	"podd/reconcile/result":    {"context", "os", "net", "sync"},
	"podd/reconcile/status":    {"context", "os", "net", "sync"},
	"podd/reconcile/render":    {"context", "os", "net", "sync"},
	"podd/reconcile/event":     {"context", "os", "net", "sync"},
	"podd/reconcile/gc":        {"context", "os", "net", "sync"},

	"podd/reconcile/eviction/pressure": {"context", "os", "net", "sync"},
	"podd/reconcile/pull/verify":       {"context", "os", "net"},
	"podd/cmd/podd/internal/check":     {"context", "os", "net", "sync"},
	"podd/reconcile/device/allocation": {"context", "os", "net", "sync"},
	"podd/reconcile/volume/selinux":    {"context", "os", "net", "sync"},
}

// A listedPackage is a package in the output of go list.
type listedPackage struct {
	ImportPath    string
	Imports, Deps []string
}

// TestImports checks that the imports of all packages follow the rules in this file.
func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, rule := range forbiddenImports {
			if !isBelow(p.ImportPath, rule.importer) || isForTests(p.ImportPath) {
				continue
			}
			for _, dep := range p.Deps {
				if isBelow(dep, rule.forbidden) && !isBelow(dep, rule.importer) && !isLeaf(dep) {
					t.Errorf("%s imports %s; this is forbidden because %s", p.ImportPath, dep, rule.reason)
				}
			}
		}
		if from := programOf(p.ImportPath); from != "" {
			for _, dep := range p.Deps {
				if to := programOf(dep); to != "" && to != from {
					t.Errorf("%s imports %s; the packages in programPackages must not import each other", p.ImportPath, dep)
				}
			}
		}
		for _, i := range p.Imports {
			if isLeaf(p.ImportPath) && (isBelow(i, "podd") || strings.Contains(i, ".") && !slices.Contains(leafImports, i)) {
				t.Errorf("%s imports %s; a leaf package may import only the standard library and leafImports", p.ImportPath, i)
			}
		}
		imports := p.Deps // direct and indirect imports
		// daemonPackage and mainPackage import client-go indirectly, through clusterPackage.
		if p.ImportPath == daemonPackage || p.ImportPath == mainPackage {
			imports = p.Imports
		}
		for _, i := range imports {
			if isBelow(i, "k8s.io/client-go") && !isBelow(p.ImportPath, clusterPackage) && !isAPIClientForTests(p.ImportPath) {
				t.Errorf("%s imports %s; only package cluster and the packages below it may connect to an API server", p.ImportPath, i)
			}
		}
		for _, banned := range pureImports[p.ImportPath] {
			for _, i := range p.Imports {
				if i == banned {
					t.Errorf("%s imports %s; a pure package must not import it", p.ImportPath, i)
				}
			}
		}
	}
}

// isForTests reports whether only tests import a package.
func isForTests(path string) bool {
	return isBelow(path, "podd/runtime/runtimetest") || isBelow(path, "podd/server/kube/kubetest") || isBelow(path, "podd/manifest/manifesttest")
}

// isAPIClientForTests reports whether a package connects to an API server in tests or
// benchmarks.
func isAPIClientForTests(path string) bool {
	return isBelow(path, "podd/cmd/podd/e2e") || isBelow(path, "podd/cmd/podd/bench")
}

// isBelow reports whether path is root or below root.
func isBelow(path, root string) bool {
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
