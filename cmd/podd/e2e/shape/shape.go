// Package shape says which fields and metrics an answer of a kubelet's has, without
// what they say: a line each, by which the answers of two programs are compared.
package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Summary is that of /stats/summary, of the pods with a suffix on their names, which
// is left out: "pods[web].containers[main].memory.rssBytes". What the machine has
// any number of is told of once.
func Summary(text []byte, suffix string) ([]string, error) {
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	var lines []string
	walk(all, "", suffix, &lines)
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

func walk(v any, at, suffix string, lines *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for name, each := range v {
			walk(each, strings.TrimPrefix(at+"."+name, "."), suffix, lines)
		}
	case []any:
		for _, each := range v {
			name := nameOf(each, suffix)
			if at == "pods" && name == "" {
				continue // of another test
			}
			walk(each, at+"["+name+"]", suffix, lines)
		}
	default:
		*lines = append(*lines, at)
	}
}

// nameOf is what an element of a list is known by.
func nameOf(v any, suffix string) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	if ref, ok := m["podRef"].(map[string]any); ok {
		name, found := strings.CutSuffix(fmt.Sprint(ref["name"]), suffix)
		if !found {
			return ""
		}
		return name
	}
	if _, ok := m["rxBytes"]; ok {
		return "" // the machine's interfaces, and a pod's one
	}
	name, _ := m["name"].(string)
	return name
}

// Metrics is that of a scrape: "node_name gauge node", or, where rows are of the
// control groups of different things, a line for each of them:
// "container_cpu_usage_seconds_total counter id,name,… container".
func Metrics(text, suffix string) []string {
	kinds := map[string]string{}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			kinds[name] = kind
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, labels := row(line)
		kind := kinds[name]
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, end); ok && kind == "" && kinds[base] != "" {
				name, kind = base, kinds[base]
				delete(labels, "le")
			}
		}
		var names []string
		for l := range labels {
			names = append(names, l)
		}
		slices.Sort(names)
		what := thing(labels, suffix)
		if what == "other" {
			continue
		}
		lines = append(lines, strings.Join(strings.Fields(name+" "+kind+" "+strings.Join(names, ",")+" "+what), " "))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// thing is what a row is of, by its labels; "": there is only one.
func thing(labels map[string]string, suffix string) string {
	pod, ofPod := labels["pod"]
	id, hasID := labels["id"]
	switch {
	case !ofPod && !hasID:
		return ""
	case pod != "" && !strings.HasSuffix(pod, suffix):
		return "other"
	case labels["container"] != "":
		return "container"
	case pod != "" && labels["name"] != "":
		return "sandbox"
	case pod != "":
		return "pod"
	case id == "/":
		return "node"
	case strings.HasSuffix(id, "/kubepods"):
		return "pods"
	}
	return "other"
}

// row is the name of a line's metric, and its labels.
func row(line string) (string, map[string]string) {
	name, rest, labelled := strings.Cut(line, "{")
	labels := map[string]string{}
	if !labelled {
		name, _, _ = strings.Cut(line, " ")
		return name, labels
	}
	for rest != "" && rest[0] != '}' {
		label, after, ok := strings.Cut(rest, `="`)
		if !ok {
			break
		}
		var value strings.Builder
		i := 0
		for ; i < len(after) && after[i] != '"'; i++ {
			if after[i] == '\\' && i+1 < len(after) {
				i++
			}
			value.WriteByte(after[i])
		}
		labels[label] = value.String()
		rest = strings.TrimPrefix(after[min(i+1, len(after)):], ",")
	}
	return name, labels
}
