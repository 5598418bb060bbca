package metrics

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"podd/runtime/runtimetest/golden"
)

// TestStableNames checks that the names, types and labels of all metrics are stable, because
// dashboards and alerts depend on them, and that every metric has a help text.
func TestStableNames(t *testing.T) {
	m := exercised()
	m.Handler(inputs())
	var got strings.Builder
	for _, endpoint := range []struct {
		path string
		*prometheus.Registry
	}{{"/metrics", m.mainRegistry}, {"/metrics/probes", m.probeRegistry}, {"/metrics/slis", m.sliRegistry}} {
		got.WriteString(endpoint.path + "\n")
		for _, line := range table(t, endpoint.Registry) {
			got.WriteString("\t" + line + "\n")
		}
	}
	golden.Compare(t, filepath.Join("testdata", "table.txt"), got.String())
}

// readKubeletMetrics returns the names of the kubelet's metrics: those that its source declares
// (testdata/kubelet.txt), and those that it served at /metrics (testdata/kubelet/stats.txt of podd), which
// include metrics of its libraries. The result omits the metrics that other packages of podd serve at other
// paths, such as /metrics/resource, and those of the Go client library.
func readKubeletMetrics(t *testing.T) []string {
	t.Helper()
	names, elsewhere, path := map[string]bool{}, map[string]bool{}, ""
	for line := range strings.Lines(readFile(t, "../../testdata/kubelet/stats.txt")) {
		switch name, isMetric := strings.CutPrefix(line, "\t"); {
		case !isMetric:
			path = strings.TrimSpace(line)
		case path == "/metrics":
			names[strings.Fields(name)[0]] = true
		default:
			elsewhere[strings.Fields(name)[0]] = true
		}
	}
	if len(names) == 0 || len(elsewhere) == 0 {
		t.Fatalf("got %d recorded metrics at /metrics and %d at other paths, want some", len(names), len(elsewhere))
	}
	for name := range strings.FieldsSeq(readFile(t, "testdata/kubelet.txt")) {
		names[name] = true
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		return elsewhere[name] || strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
	})
	return slices.Sorted(maps.Keys(names))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKubeletMetrics checks that each metric of the kubelet is either served or listed as missing in the
// package documentation.
func TestKubeletMetrics(t *testing.T) {
	m := exercised()
	m.Handler(inputs())
	served := map[string]bool{}
	for _, r := range []*prometheus.Registry{m.mainRegistry, m.probeRegistry, m.sliRegistry} {
		for _, line := range table(t, r) {
			name, _, _ := strings.Cut(line, " ")
			served[name] = true
		}
	}
	list := missingMetrics(t)
	for _, name := range readKubeletMetrics(t) {
		if listed := mentions(list, strings.TrimPrefix(name, "kubelet_")); served[name] == listed {
			t.Errorf("%s: got served %t and listed as missing %t, want exactly one", name, served[name], listed)
		}
	}
}

// missingMetrics returns the list of missing metrics in the package documentation: its indented lines.
func missingMetrics(t *testing.T) string {
	t.Helper()
	doc, _, _ := strings.Cut(readFile(t, "metrics.go"), "\npackage metrics")
	var list strings.Builder
	for line := range strings.Lines(doc) {
		if text, isIndented := strings.CutPrefix(line, "//\t"); isIndented {
			list.WriteString(text)
		}
	}
	return list.String()
}

// mentions reports whether list contains name. A word in list may abbreviate the
// middle of a name as "…".
func mentions(list, name string) bool {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' }) {
		before, after, cut := strings.Cut(word, "…")
		if word == name || cut && before != "" && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			return true
		}
	}
	return false
}

// table returns a line "name type labels" for each metric, except those of the Go
// client library.
func table(t *testing.T, r *prometheus.Registry) []string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		name := f.GetName()
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		if f.GetHelp() == "" {
			t.Errorf("%s has no help text", name)
		}
		line := ""
		for i, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			now := strings.TrimSpace(name + " " + strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ","))
			if i > 0 && now != line {
				t.Errorf("two series of one metric have different labels: %q and %q", line, now)
			}
			line = now
		}
		all = append(all, line)
	}
	return all
}
