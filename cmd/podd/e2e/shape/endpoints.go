package shape

import (
	"slices"
	"strings"
)

// Endpoints are the paths of the endpoints to compare.
var Endpoints = []string{"/stats/summary", "/stats/summary?only_cpu_and_memory=true", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes", "/metrics"}

// FetchAll returns the fields and metrics of every endpoint of a node, by the path of the endpoint.
// It includes only pods with names that have the suffix.
func FetchAll(get func(path string) ([]byte, error), suffix string) (map[string][]string, error) {
	shapes := map[string][]string{}
	for _, endpoint := range Endpoints {
		text, err := get(endpoint)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(endpoint, "/stats/") {
			shapes[endpoint] = metricNames(string(text), suffix)
			continue
		}
		if shapes[endpoint], err = summaryFields(text, suffix); err != nil {
			return nil, err
		}
	}
	return shapes, nil
}

// Diff compares the lists of lines want and got. The result contains the lines that only the first
// list contains, with the prefix "-", and the lines that only the second list contains, with the
// prefix "+".
func Diff(want, got []string) []string {
	var lines []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			lines = append(lines, "-"+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			lines = append(lines, "+"+line)
		}
	}
	return lines
}

// Format formats the result of FetchAll. Parse is its inverse.
func Format(shapes map[string][]string) string {
	var b strings.Builder
	for _, endpoint := range Endpoints {
		b.WriteString(endpoint + "\n")
		for _, line := range shapes[endpoint] {
			b.WriteString("\t" + line + "\n")
		}
	}
	return b.String()
}

// Parse parses the result of Format.
func Parse(text string) map[string][]string {
	shapes, endpoint := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if shapeLine, ok := strings.CutPrefix(line, "\t"); ok {
			shapes[endpoint] = append(shapes[endpoint], shapeLine)
		} else {
			endpoint = line
		}
	}
	return shapes
}
