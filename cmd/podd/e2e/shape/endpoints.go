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
	all := map[string][]string{}
	for _, endpoint := range Endpoints {
		text, err := get(endpoint)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(endpoint, "/stats/") {
			all[endpoint] = metricNames(string(text), suffix)
			continue
		}
		if all[endpoint], err = summaryFields(text, suffix); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Diff compares the lists of lines want and got. The result contains the lines that only the first
// list contains, with the prefix "-", and the lines that only the second list contains, with the
// prefix "+".
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

// Format formats the result of FetchAll. Parse is its inverse.
func Format(all map[string][]string) string {
	var b strings.Builder
	for _, endpoint := range Endpoints {
		b.WriteString(endpoint + "\n")
		for _, line := range all[endpoint] {
			b.WriteString("\t" + line + "\n")
		}
	}
	return b.String()
}

// Parse parses the result of Format.
func Parse(text string) map[string][]string {
	all, endpoint := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "\t"); ok {
			all[endpoint] = append(all[endpoint], rest)
		} else {
			endpoint = line
		}
	}
	return all
}
