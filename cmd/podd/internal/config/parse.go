package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
	"podd/manifest/document"
	"podd/manifest/order"
	"podd/manifest/schema"
)

// parseLayer parses a KubeletConfiguration. parseLayer omits invalid fields from the layer and returns
// a problem for each of them. If d is not a KubeletConfiguration, the layer is nil and the problem is
// an error.
func parseLayer(d Document) (*layer, []manifest.Problem) {
	l, problems := parseFile(d.Path, d.Data, kubeletSchema())
	if l == nil {
		return nil, problems
	}
	if p, ok := checkKind(l); !ok {
		return nil, []manifest.Problem{p}
	}
	problems = append(problems, l.removeInvalid(kubeletSchema())...)
	resolvePaths(l, d.Dir)
	sortByPosition(problems)
	return l, problems
}

// kubeletSchema is the schema of the files of --config and --config-dir.
var kubeletSchema = sync.OnceValue(func() *schema.Schema { return schema.New[kubelet.KubeletConfiguration]() })

// parseFile parses the first document of a file. It returns a warning for each duplicate
// field, and a warning if there are more documents. If the document is not an object, the
// layer is nil and the problem is an error. The caller must call removeInvalid.
func parseFile(path string, data []byte, s *schema.Schema) (*layer, []manifest.Problem) {
	newError := func(at manifest.Position, message string) (*layer, []manifest.Problem) {
		return nil, []manifest.Problem{origin{path: path, pos: at}.problem(manifest.Error, "", message)}
	}
	parts, err := document.Split(data)
	if err != nil {
		return newError(manifest.Position{}, err.Error())
	}
	v, syntaxError := document.Parse(parts[0])
	if syntaxError != nil {
		return newError(syntaxError.Position, syntaxError.Error())
	}
	tree, ok := v.Tree.(map[string]any)
	switch {
	case v.Tree == nil:
		return newError(v.Position(), "empty; write apiVersion, kind and the fields to set")
	case !ok:
		return newError(v.Position(), fmt.Sprintf("must be an object with apiVersion and kind, not %s", schema.TypeName(v.Tree)))
	}
	l := &layer{path: path, tree: tree}
	var problems []manifest.Problem
	l.positions = s.Index(v.Node, func(f schema.Fault) { problems = append(problems, l.problem(f)) })
	for _, part := range parts[1:] {
		if at, isBlank := part.FirstLinePosition(); !isBlank {
			problems = append(problems, origin{path: path, pos: at}.problem(manifest.Warning, "", "only the first document is read; move this one to its own file"))
			break
		}
	}
	return l, problems
}

// removeInvalid removes unknown fields and values of a wrong type from the tree of l. It
// returns a problem for each of them.
func (l *layer) removeInvalid(s *schema.Schema) (problems []manifest.Problem) {
	clean := s.CheckPatch(l.tree, func(f schema.Fault) { problems = append(problems, l.problem(f)) })
	l.tree = clean.(map[string]any)
	return problems
}

// problem returns the problem that describes a fault. The problem is an error if the type of a
// value is wrong, and otherwise a warning.
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
	order.Stable(problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
}

const (
	kubeletConfigAPIVersion = "kubelet.config.k8s.io/v1beta1"
	kubeletConfigKind       = "KubeletConfiguration"
)

// checkKind checks that l is a KubeletConfiguration. If not, ok is false and checkKind returns the
// problem.
func checkKind(l *layer) (problem manifest.Problem, ok bool) {
	for _, f := range []struct{ field, want string }{{"apiVersion", kubeletConfigAPIVersion}, {"kind", kubeletConfigKind}} {
		switch got := l.tree[f.field]; got {
		case f.want:
		case nil:
			return origin{path: l.path, pos: manifest.Position{Line: 1}}.problem(manifest.Error, f.field,
				fmt.Sprintf("required; add %s: %s", f.field, f.want)), false
		default:
			return l.origin(f.field).problem(manifest.Error, f.field,
				fmt.Sprintf("unsupported value %v; must be %s", got, f.want)), false
		}
	}
	return manifest.Problem{}, true
}

// resolvePaths makes the paths in a document absolute. A relative path refers to dir. A relative path on
// the command line is relative to the working directory.
func resolvePaths(l *layer, dir string) {
	for _, path := range []string{
		"staticPodPath", "resolvConf", "podLogsDir", "tlsCertFile", "tlsPrivateKeyFile", "authentication.x509.clientCAFile",
	} {
		tree, field := l.tree, path
		for above, remainder, ok := strings.Cut(field, "."); ok; above, remainder, ok = strings.Cut(field, ".") {
			tree, _ = tree[above].(map[string]any) // nil if the object above is not set
			field = remainder
		}
		if p, ok := tree[field].(string); ok && p != "" && !filepath.IsAbs(p) {
			tree[field] = filepath.Join(dir, p)
		}
	}
}
