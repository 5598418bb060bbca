package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"podd/manifest"
	"podd/manifest/order"
)

// A Warning is a problem that does not prevent podd from running.
type Warning = manifest.Problem

// Errors contains all errors of a configuration.
type Errors []manifest.Problem

// Error returns one line for each error. If there are several errors, the first line contains
// their number.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	text := strings.Join(lines, "\n")
	if len(e) == 1 {
		return text
	}
	return fmt.Sprintf("invalid configuration, %d errors:\n%s", len(e), text)
}

// Load reads the files that the flags name and returns the Config. It may return warnings
// together with an error. If the error is not nil, the Config must not be used. If files cannot be
// read, Load also reports the problems of the other files.
func Load(flags Flags, host HostFacts) (Config, []Warning, error) {
	docs, readErr := ReadDocuments(&flags)
	cfg, warnings, err := LoadDocuments(flags, docs, host)
	if readErr != nil {
		return Config{}, warnings, errors.Join(readErr, err)
	}
	return cfg, warnings, err
}

// LoadDocuments is like Load, but uses docs instead of the files that the flags name.
func LoadDocuments(flags Flags, docs []Document, host HostFacts) (Config, []Warning, error) {
	layers, problems := parseDocuments(docs)
	tree := newMergedTree()
	for _, l := range layers {
		tree.apply(l)
	}
	flagLayer, flagProblems := flags.checkedLayer()
	problems = append(problems, flagProblems...)
	tree.apply(flagLayer)
	user, err := tree.decode()
	if err != nil {
		return Config{}, nil, err
	}
	c := &checker{kubelet: user, merged: tree, host: host}
	problems = append(problems, c.check()...)

	r := &resolver{flags: &flags, host: host, kubelet: user, merged: tree}
	cfg := r.resolve()
	cfg.RedactedConfig = redact(&flags, user, tree, &cfg)
	problems = append(problems, r.problems...)
	problems = append(problems, warnIgnoredSettings(user, tree, &flags)...)

	sortProblems(problems)
	var warnings []Warning
	var errs Errors
	for _, p := range problems {
		if p.Severity == manifest.Warning {
			warnings = append(warnings, p)
		} else {
			errs = append(errs, p)
		}
	}
	if len(errs) > 0 {
		return Config{}, warnings, errs
	}
	return cfg, warnings, nil
}

// sortProblems sorts problems by file and position, as an editor shows them. The problems of flags come
// first, and keep their order.
func sortProblems(problems []manifest.Problem) {
	order.Stable(problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
}

// decode decodes the merged tree. The types of the values in each layer have been checked, so
// an error can only be caused by a combination of layers.
func (m *mergedTree) decode() (*kubelet.KubeletConfiguration, error) {
	data, err := json.Marshal(m.tree)
	if err != nil {
		return nil, fmt.Errorf("merging the configuration files and flags: %w", err)
	}
	k := &kubelet.KubeletConfiguration{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, k); err != nil {
		return nil, fmt.Errorf("merging the configuration files and flags: %w", err)
	}
	return k, nil
}

// LoadForHost calls Load with the facts of this host.
func LoadForHost(flags Flags) (Config, []Warning, error) {
	host, err := ReadHostFacts()
	if err != nil {
		return Config{}, nil, err
	}
	return Load(flags, host)
}

// WriteWarnings writes each warning as a line, which editors can parse.
func WriteWarnings(w io.Writer, warnings []Warning) {
	for _, warning := range warnings {
		fmt.Fprintln(w, warning)
	}
}
