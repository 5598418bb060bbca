package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// get sends a GET request to the node and returns the body of the response. If there is no response,
// the error contains the end of the node's log.
func (n *node) get(path string) ([]byte, error) {
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", n.port, path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", n.name, err, n.logTail())
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: got status %s, want 200: %.200s", path, resp.Status, text)
	}
	return text, err
}

// fetchNumbers returns the numbers in /stats/summary by their path.
func (n *node) fetchNumbers() (map[string]float64, error) {
	text, err := n.get("/stats/summary")
	if err != nil {
		return nil, err
	}
	var summary any
	if err := json.Unmarshal(text, &summary); err != nil {
		return nil, err
	}
	numbers := map[string]float64{}
	flatten(summary, "", n.name, numbers)
	return numbers, nil
}

func flatten(v any, path, node string, to map[string]float64) {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			flatten(child, strings.TrimPrefix(path+"."+name, "."), node, to)
		}
	case []any:
		for _, element := range v {
			m, _ := element.(map[string]any)
			name, _ := m["name"].(string)
			if ref, ok := m["podRef"].(map[string]any); ok {
				name = strings.TrimSuffix(fmt.Sprint(ref["name"]), "-"+node)
			}
			flatten(element, path+"["+name+"]", node, to)
		}
	case float64:
		to[path] = v
	}
}

// incomparable matches the paths of numbers that always grow or that describe the node's own
// processes. compareNumbers ignores them, because the two nodes start at different times.
// compareRates compares the processor times instead.
var incomparable = regexp.MustCompile(`usageCoreNanoSeconds|usageNanoCores|[pP]ageFaults|\.network\.|rlimit|systemContainers\[(kubelet|runtime)\]|runtime\.|psi`)

// compareNumbers compares the numbers of podd with those of the kubelet. It returns a description of
// each difference, by the path of the number. Two numbers differ if the difference exceeds both a
// twentieth of the kubelet's number and an absolute tolerance.
func compareNumbers(kubelet, podd map[string]float64) map[string]string {
	differences := map[string]string{}
	for _, at := range slices.Sorted(maps.Keys(kubelet)) {
		got, has := podd[at]
		want := kubelet[at]
		tolerance := 0.0
		switch {
		case strings.HasSuffix(at, "Bytes"):
			tolerance = 256 << 10 // because the kernel accounts pages in batches, on each processor
		case strings.HasSuffix(at, "].ephemeral-storage.inodesUsed"):
			tolerance = 2 // because podd also counts the termination message of each container
		}
		if has && !incomparable.MatchString(at) && math.Abs(got-want) > max(want/20, tolerance) {
			differences[at] = fmt.Sprintf("%s: got %.0f, want %.0f", at, got, want)
		}
	}
	return differences
}

// fetchCounters returns the processor times in /metrics/resource by metric and labels.
func (n *node) fetchCounters() (map[string]counter, error) {
	text, err := n.get("/metrics/resource")
	if err != nil {
		return nil, err
	}
	counters := map[string]counter{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !strings.Contains(fields[0], "_cpu_usage_seconds_total{") {
			continue
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		at, terr := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || terr != nil {
			return nil, fmt.Errorf("parsing the metric line %q: want a value and a time in milliseconds", line)
		}
		counters[strings.ReplaceAll(fields[0], "-"+n.name+`"`, `"`)] = counter{time.UnixMilli(at), value}
	}
	return counters, nil
}

// A counter is a processor time in seconds and the time of its measurement.
type counter struct {
	at    time.Time
	value float64
}

// computeRates returns the average number of processors that each cgroup used between two
// measurements, by metric and labels.
func computeRates(start, end map[string]counter) map[string]float64 {
	rates := map[string]float64{}
	for name, t := range end {
		if f, ok := start[name]; ok && t.at.After(f.at) {
			rates[name] = (t.value - f.value) / t.at.Sub(f.at).Seconds()
		}
	}
	return rates
}

// compareRates compares rates like compareNumbers, with an absolute tolerance of 0.002 processors. It
// also reports each rate that podd does not have.
func compareRates(kubelet, podd map[string]float64) map[string]string {
	differences := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(kubelet)) {
		got, has := podd[name]
		if want := kubelet[name]; !has || math.Abs(got-want) > max(want/20, 0.002) {
			differences[name] = fmt.Sprintf("%s: got a rate of %.4f, want %.4f", name, got, want)
		}
	}
	return differences
}
