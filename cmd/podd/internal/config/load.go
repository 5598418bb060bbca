package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"podd/manifest"
)

// Warning is something to tell the user once that keeps nothing from running.
type Warning = manifest.Problem

// Errors is everything wrong with a configuration.
type Errors []manifest.Problem

// Error has one line an error, each with its place, after a line that counts
// them when they are several.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	text := strings.Join(lines, "\n")
	if len(e) == 1 {
		return text
	}
	return fmt.Sprintf("configuration refused, %d errors:\n%s", len(e), text)
}

// Load makes the Config of the flags and the files they name on machine m.
// Warnings come also with an error; on error the Config is not to be used.
func Load(flags Flags, m Machine) (Config, []Warning, error) {
	layers, problems, readErr := readLayers(&flags)
	sum := newMerged()
	for _, l := range layers {
		sum.apply(l)
	}
	line, found := flags.checkedLayer()
	problems = append(problems, found...)
	sum.apply(line)
	user, err := sum.decode()
	if err != nil {
		return Config{}, nil, errors.Join(readErr, err)
	}
	c := &checking{k: user, m: sum, machine: m}
	problems = append(problems, c.all()...)

	r := &resolving{flags: &flags, machine: m, k: user}
	cfg := r.config()
	if cfg.Shown, err = shown(&flags, user, sum, &cfg); err != nil {
		return Config{}, nil, errors.Join(readErr, err)
	}
	problems = append(problems, r.problems...)
	problems = append(problems, unserved(user, sum, flags.Known, flags.Kubeconfig != "")...)

	var warnings []Warning
	var refused Errors
	for _, p := range problems {
		if p.Severity == manifest.Warning {
			warnings = append(warnings, p)
		} else {
			refused = append(refused, p)
		}
	}
	if len(refused) > 0 {
		return Config{}, warnings, errors.Join(readErr, refused)
	}
	return cfg, warnings, readErr
}

// decode makes the Go value. The layers were held against its types before,
// so an error here is of a value that no single layer shows.
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
