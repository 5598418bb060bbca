package main

import (
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// base is a pod from which cases are derived.
type base struct {
	name string
	pod  any
	// isFixed reports whether the base is recorded without cases that change it.
	isFixed bool
}

// readBases reads the bases of this program, and the manifests of podd's tests as fixed bases.
func readBases() ([]base, error) {
	var bases []base
	for _, source := range []struct {
		pattern string
		isFixed bool
	}{
		{"validation/bases/*.yaml", false},
		{"../demo/*.yaml", true},
		{"../manifests/minimal.yaml", true},
		{"../manifests/supported.yaml", true},
		{"../manifests/defaults/*.yaml", true},
		{"../manifests/kubeadm/*.yaml", true},
		{"../render/*.yaml", true},
	} {
		paths, err := filepath.Glob(source.pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			fileBases, err := readBase(path, source.isFixed)
			if err != nil {
				return nil, err
			}
			bases = append(bases, fileBases...)
		}
	}
	return bases, nil
}

// readBase reads the pods of a file and skips other objects.
func readBase(path string, isFixed bool) ([]base, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var bases []base
	for _, text := range strings.Split("\n"+string(data), "\n---") {
		var pod any
		if err := yaml.Unmarshal([]byte(text), &pod); err != nil {
			return nil, err
		}
		if m, ok := pod.(map[string]any); ok && m["kind"] == "Pod" {
			name := strings.TrimPrefix(strings.TrimPrefix(path, "../"), "validation/bases/")
			bases = append(bases, base{strings.TrimSuffix(name, ".yaml"), pod, isFixed})
		}
	}
	return bases, nil
}
