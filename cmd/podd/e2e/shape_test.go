//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"podd/cmd/podd/e2e/shape"
)

// TestEndpoints_SameFieldsAsKubelet checks that podd's responses have the same fields, metrics and
// labels as those of a kubelet with the same pods. The program cmd/podd/e2e/measure has recorded the
// fields, metrics and labels of the kubelet's responses in testdata/kubelet/stats.txt.
func TestEndpoints_SameFieldsAsKubelet(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../testdata/kubelet/stats.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := shape.Parse(string(text))
	port := freePort(t)
	d := newDaemon(t, shared, "--read-only-port", strconv.Itoa(port))
	d.start()
	for _, p := range shape.Pods() {
		d.apply(p)
	}
	c := d.client("http://127.0.0.1:"+strconv.Itoa(port), nil)
	get := func(path string) ([]byte, error) {
		status, text := c.request(http.MethodGet, path, "")
		if status != http.StatusOK {
			return nil, fmt.Errorf("%s: got status %d, body %.200s; want status 200", path, status, text)
		}
		return []byte(text), nil
	}
	d.eventually("podd's responses have the fields and metrics of a kubelet's", func() error {
		got, err := shape.FetchAll(get, "-"+d.host)
		if err != nil {
			return err
		}
		var differ []string
		for _, endpoint := range shape.Endpoints {
			for _, line := range shape.Unexpected(endpoint, shape.Diff(want[endpoint], got[endpoint])) {
				if strings.HasPrefix(line, "-") && strings.HasSuffix(line, " sandbox") && !d.on.HasSandboxProcess() {
					continue
				}
				differ = append(differ, endpoint+" "+line)
			}
		}
		if len(differ) > 0 {
			return fmt.Errorf("got %d lines that differ from the kubelet's, want none:\n%s", len(differ), strings.Join(differ, "\n"))
		}
		return nil
	})
}
