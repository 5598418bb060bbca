package shape

import (
	"slices"
	"strings"
)

// Faces are the paths that have one.
var Faces = []string{"/stats/summary", "/stats/summary?only_cpu_and_memory=true", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes", "/metrics"}

// All asks every face of a node, whose pods' names have a suffix.
func All(get func(path string) ([]byte, error), suffix string) (map[string][]string, error) {
	all := map[string][]string{}
	for _, face := range Faces {
		text, err := get(face)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(face, "/stats/") {
			all[face] = Metrics(string(text), suffix)
			continue
		}
		if all[face], err = Summary(text, suffix); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Diff is what only one of two has: "-" before what the second lacks, "+" before
// what only the second has.
func Diff(want, got []string) []string {
	var all []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			all = append(all, "-"+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			all = append(all, "+"+line)
		}
	}
	return all
}

// Text writes shapes down, and Parse reads them.
func Text(all map[string][]string) string {
	var b strings.Builder
	for _, face := range Faces {
		b.WriteString(face + "\n")
		for _, line := range all[face] {
			b.WriteString("\t" + line + "\n")
		}
	}
	return b.String()
}

// Parse reads what Text wrote.
func Parse(text string) map[string][]string {
	all, face := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "\t"); ok {
			all[face] = append(all[face], rest)
		} else {
			face = line
		}
	}
	return all
}
