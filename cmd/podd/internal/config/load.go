package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"podd/manifest"
)

// A Warning is a problem of a configuration that podd can run with.
type Warning = manifest.Problem

// Errors contains all errors of a configuration.
type Errors []manifest.Problem

// Error returns one line for each error, preceded by a line with their number if there
// are several.
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

// Load returns the Config for the flags and the files that they name. It may return warnings
// together with an error. If the error is not nil, the Config must not be used.
func Load(flags Flags, m Machine) (Config, []Warning, error) {
	layers, problems, readErr := readLayers(&flags)
	all := newMerged()
	for _, l := range layers {
		all.apply(l)
	}
	flagLayer, found := flags.checkedLayer()
	problems = append(problems, found...)
	all.apply(flagLayer)
	user, err := all.decode()
	if err != nil {
		return Config{}, nil, errors.Join(readErr, err)
	}
	c := &checker{k: user, m: all, machine: m}
	problems = append(problems, c.check()...)

	r := &resolver{flags: &flags, machine: m, k: user}
	cfg := r.resolve()
	if cfg.Shown, err = shown(&flags, user, all, &cfg); err != nil {
		return Config{}, nil, errors.Join(readErr, err)
	}
	problems = append(problems, r.problems...)
	problems = append(problems, unserved(user, all, flags.Known, flags.Kubeconfig != "")...)

	var warnings []Warning
	var failures Errors
	for _, p := range problems {
		if p.Severity == manifest.Warning {
			warnings = append(warnings, p)
		} else {
			failures = append(failures, p)
		}
	}
	if len(failures) > 0 {
		return Config{}, warnings, errors.Join(readErr, failures)
	}
	return cfg, warnings, readErr
}

// decode decodes the merged tree. The layers have been checked against the types, so an
// error is one of a combination of layers.
func (m *merged) decode() (*kubelet.KubeletConfiguration, error) {
	data, err := json.Marshal(m.tree)
	if err != nil {
		return nil, fmt.Errorf("merging configuration: %w", err)
	}
	k := &kubelet.KubeletConfiguration{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, k); err != nil {
		return nil, fmt.Errorf("merging configuration: %w", err)
	}
	return k, nil
}

// LoadHere calls Load with ThisMachine and prints the warnings to w.
func LoadHere(flags Flags, w io.Writer) (Config, error) {
	machine, err := ThisMachine()
	if err != nil {
		return Config{}, err
	}
	cfg, warnings, err := Load(flags, machine)
	for _, warning := range warnings {
		fmt.Fprintln(w, warning)
	}
	return cfg, err
}
