package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"podd/manifest"
)

// parseLayer parses a KubeletConfiguration. Invalid fields are omitted from the layer and
// reported as problems. The layer is nil if the content is not a KubeletConfiguration.
func parseLayer(path string, data []byte) (*layer, []manifest.Problem) {
	l, problems := parseMapping(path, data)
	if l == nil {
		return nil, problems
	}
	if p, ok := checkKind(l); !ok {
		return nil, []manifest.Problem{p}
	}
	t := typeChecker{layer: l}
	t.checkObject(l.tree, reflect.TypeFor[kubelet.KubeletConfiguration](), "")
	resolvePaths(l)
	return l, append(problems, t.problems...)
}

// parseMapping parses a YAML mapping. The layer is nil if the content is not one.
func parseMapping(path string, data []byte) (*layer, []manifest.Problem) {
	l := &layer{path: path}
	fail := func(pos manifest.Position, format string, args ...any) (*layer, []manifest.Problem) {
		return nil, []manifest.Problem{origin{path: path, pos: pos}.problem(manifest.Error, "", fmt.Sprintf(format, args...))}
	}
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return fail(yamlError(err))
	}
	d := json.NewDecoder(bytes.NewReader(asJSON))
	d.UseNumber()
	if err := d.Decode(&l.tree); err != nil || l.tree == nil {
		return fail(manifest.Position{Line: 1}, "not a mapping; want apiVersion, kind and fields")
	}
	f := &positionFinder{at: map[string]manifest.Position{}, path: path}
	f.findAll(data)
	l.at = f.at
	return l, f.problems
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

// yamlError returns the position of a YAML error, and a format and its argument for the
// message.
func yamlError(err error) (manifest.Position, string, string) {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	m := yamlLine.FindStringSubmatch(text)
	if m == nil {
		return manifest.Position{}, "invalid YAML: %s", text
	}
	line, _ := strconv.ParseUint(m[1], 10, 32)
	return manifest.Position{Line: uint32(line)}, "invalid YAML: %s", m[2]
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)`)

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
