package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"podd/cmd/podd/e2e/freeport"
)

// callCounter reads the number of CRI calls from containerd's metrics.
type callCounter struct{ address string }

// newCallCounter finds a free port for the metrics.
func newCallCounter() (*callCounter, error) {
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	return &callCounter{fmt.Sprintf("127.0.0.1:%d", port)}, nil
}

func (c *callCounter) containerdConfig() string {
	return "version = 3\n[metrics]\naddress = \"" + c.address + "\"\n"
}

// readCounts returns the number of CRI calls that containerd has completed, by method.
func (c *callCounter) readCounts(ctx context.Context) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+"/v1/metrics", nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("reading containerd's metrics: %w", err)
	}
	defer reply.Body.Close()
	counts := map[string]float64{}
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if labels, n, ok := parseCounter(lines.Text()); ok {
			counts[labelValue(labels, "grpc_method")] += n
		}
	}
	return counts, lines.Err()
}

// parseCounter parses a line of the counter of completed CRI calls. ok is false for other lines.
func parseCounter(line string) (labels string, n float64, ok bool) {
	counter, ok := strings.CutPrefix(line, "grpc_server_handled_total{")
	if !ok || !strings.Contains(counter, `grpc_service="runtime.v1.`) {
		return "", 0, false
	}
	labels, number, ok := strings.Cut(counter, "} ")
	if !ok {
		return "", 0, false
	}
	n, err := strconv.ParseFloat(number, 64)
	return labels, n, err == nil
}

func labelValue(labels, name string) string {
	_, afterName, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(afterName, `"`)
	return value
}

// subtractCounts subtracts the counts in before from the counts in after. The result contains only
// the counts that have grown.
func subtractCounts(after, before map[string]float64) map[string]float64 {
	d := map[string]float64{}
	for name, n := range after {
		if n -= before[name]; n > 0 {
			d[name] = n
		}
	}
	return d
}
