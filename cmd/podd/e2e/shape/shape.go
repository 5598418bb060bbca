// Package shape lists the fields and metrics of a kubelet's responses, one per line and without
// their values, so that the responses of two programs can be compared.
package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// summaryFields returns the fields of /stats/summary, for example
// "pods[web].containers[main].memory.rssBytes". It includes only pods with names that end with the
// suffix, and removes the suffix from the names. The network interfaces of a node or pod appear once,
// because their number depends on the host.
func summaryFields(text []byte, suffix string) ([]string, error) {
	var summary any
	if err := json.Unmarshal(text, &summary); err != nil {
		return nil, err
	}
	var lines []string
	appendFields(summary, "", suffix, &lines)
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

func appendFields(v any, path, suffix string, lines *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			appendFields(child, strings.TrimPrefix(path+"."+name, "."), suffix, lines)
		}
	case []any:
		for _, element := range v {
			name := elementName(element, suffix)
			if path == "pods" && name == "" {
				continue // a pod without the suffix
			}
			appendFields(element, path+"["+name+"]", suffix, lines)
		}
	default:
		*lines = append(*lines, path)
	}
}

// elementName returns the name that identifies an element of a list, without the suffix.
func elementName(v any, suffix string) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	if ref, ok := m["podRef"].(map[string]any); ok {
		name, hasSuffix := strings.CutSuffix(fmt.Sprint(ref["name"]), suffix)
		if !hasSuffix {
			return ""
		}
		return name
	}
	if _, ok := m["rxBytes"]; ok {
		// An interface of the host or of a pod. All interfaces get the same name, so that they
		// appear once.
		return ""
	}
	name, _ := m["name"].(string)
	return name
}

// metricNames returns a line with the name, type and label names of each metric in the text of a
// scrape, for example "node_name gauge node". A metric about cgroups has a line for each kind of
// cgroup, for example "container_cpu_usage_seconds_total counter id,name,… container". It omits
// series of pods whose names do not end with the suffix.
func metricNames(text, suffix string) []string {
	kinds := map[string]string{}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if metric, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(metric, " ")
			kinds[name] = kind
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, labels := parseRow(line)
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
		cgroup := cgroupKind(labels, suffix)
		if cgroup == "other" {
			continue
		}
		lines = append(lines, strings.Join(strings.Fields(name+" "+kind+" "+strings.Join(names, ",")+" "+cgroup), " "))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// cgroupKind returns the kind of cgroup that the labels of a sample describe. The result is "" if the
// metric is not about cgroups, and "other" if metricNames omits the sample.
func cgroupKind(labels map[string]string, suffix string) string {
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

// parseRow returns the metric name and the labels of a sample in the Prometheus text format.
func parseRow(line string) (string, map[string]string) {
	name, labelText, hasLabels := strings.Cut(line, "{")
	labels := map[string]string{}
	if !hasLabels {
		name, _, _ = strings.Cut(line, " ")
		return name, labels
	}
	for labelText != "" && labelText[0] != '}' {
		label, afterName, ok := strings.Cut(labelText, `="`)
		if !ok {
			break
		}
		var value strings.Builder
		i := 0
		for ; i < len(afterName) && afterName[i] != '"'; i++ {
			if afterName[i] == '\\' && i+1 < len(afterName) {
				i++
			}
			value.WriteByte(afterName[i])
		}
		labels[label] = value.String()
		labelText = strings.TrimPrefix(afterName[min(i+1, len(afterName)):], ",")
	}
	return name, labels
}
