package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
	"podd/manifest/document"
	"podd/manifest/schema"
)

// parseLayer parses a KubeletConfiguration. Invalid fields are omitted from the layer and
// reported as problems. The layer is nil if the content is not a KubeletConfiguration.
func parseLayer(path string, data []byte) (*layer, []manifest.Problem) {
	l, problems := parseFile(path, data, kubeletSchema())
	if l == nil {
		return nil, problems
	}
	if p, ok := checkKind(l); !ok {
		return nil, []manifest.Problem{p}
	}
	problems = append(problems, l.check(kubeletSchema())...)
	resolvePaths(l)
	sortByPosition(problems)
	return l, problems
}

// kubeletSchema is the schema of the files of --config and --config-dir.
var kubeletSchema = sync.OnceValue(func() *schema.Schema { return schema.New[kubelet.KubeletConfiguration]() })

// parseFile parses the first document of a file. It returns a warning for each duplicate
// field, and for further documents. The layer is nil if the content is not an object; the
// problem is then an error. The caller must call check.
func parseFile(path string, data []byte, s *schema.Schema) (*layer, []manifest.Problem) {
	fail := func(at manifest.Position, message string) (*layer, []manifest.Problem) {
		return nil, []manifest.Problem{origin{path: path, pos: at}.problem(manifest.Error, "", message)}
	}
	parts, err := document.Split(data)
	if err != nil {
		return fail(manifest.Position{}, err.Error())
	}
	v, syntaxError := document.Parse(parts[0])
	if syntaxError != nil {
		return fail(syntaxError.Position, syntaxError.Error())
	}
	tree, ok := v.Tree.(map[string]any)
	switch {
	case v.Tree == nil:
		return fail(v.Position(), "empty; write apiVersion, kind and the fields to set")
	case !ok:
		return fail(v.Position(), fmt.Sprintf("must be an object with apiVersion and kind, not %s", schema.TypeName(v.Tree)))
	}
	l := &layer{path: path, tree: tree}
	var problems []manifest.Problem
	l.fields = s.Index(v.Node, func(f schema.Fault) { problems = append(problems, l.problem(f)) })
	for _, part := range parts[1:] {
		if at, isBlank := part.FirstLine(); !isBlank {
			problems = append(problems, origin{path: path, pos: at}.problem(manifest.Warning, "", "only the first document is read; move this one to its own file"))
			break
		}
	}
	return l, problems
}

// check compares the tree of l with a schema and removes unknown fields and values of a wrong
// type from the tree.
func (l *layer) check(s *schema.Schema) (problems []manifest.Problem) {
	clean := s.CheckPatch(l.tree, func(f schema.Fault) { problems = append(problems, l.problem(f)) })
	l.tree = clean.(map[string]any)
	return problems
}

// problem returns the problem for a fault: an error for a wrong type, otherwise a warning.
func (l *layer) problem(f schema.Fault) manifest.Problem {
	severity, o := manifest.Warning, l.origin(f.Path)
	if f.Kind == schema.WrongType {
		severity = manifest.Error
	}
	if f.Position != (manifest.Position{}) {
		o.pos = f.Position
	}
	return o.problem(severity, f.Path, f.Message)
}

// sortByPosition sorts problems of one file.
func sortByPosition(problems []manifest.Problem) {
	slices.SortStableFunc(problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
}

const (
	apiVersion = "kubelet.config.k8s.io/v1beta1"
	kind       = "KubeletConfiguration"
)

// checkKind returns a problem and false unless the layer is a KubeletConfiguration.
func checkKind(l *layer) (manifest.Problem, bool) {
	for _, f := range []struct{ field, want string }{{"apiVersion", apiVersion}, {"kind", kind}} {
		switch got := l.tree[f.field]; got {
		case f.want:
		case nil:
			return origin{path: l.path, pos: manifest.Position{Line: 1}}.problem(manifest.Error, f.field,
				fmt.Sprintf("required; want %s: %s", f.field, f.want)), false
		default:
			return l.origin(f.field).problem(manifest.Error, f.field,
				fmt.Sprintf("unsupported value %v; want %s", got, f.want)), false
		}
	}
	return manifest.Problem{}, true
}

// resolvePaths makes the paths in a file absolute, relative to its directory. Paths on
// the command line are relative to the working directory.
func resolvePaths(l *layer) {
	dir, err := filepath.Abs(filepath.Dir(l.path))
	if err != nil {
		return // without a working directory, only absolute paths work
	}
	for _, path := range []string{
		"staticPodPath", "resolvConf", "podLogsDir", "tlsCertFile", "tlsPrivateKeyFile", "authentication.x509.clientCAFile",
	} {
		tree, field := l.tree, path
		for above, rest, ok := strings.Cut(field, "."); ok; above, rest, ok = strings.Cut(field, ".") {
			tree, _ = tree[above].(map[string]any) // a nil map can be read
			field = rest
		}
		if p, ok := tree[field].(string); ok && p != "" && !filepath.IsAbs(p) {
			tree[field] = filepath.Join(dir, p)
		}
	}
}
