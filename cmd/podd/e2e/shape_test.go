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

// TestShape: what podd tells of the same pods has the fields, metrics and labels
// that a kubelet of Kubernetes 1.34.4 has, as program measure recorded them.
func TestShape(t *testing.T) {
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
		status, text := c.ask(http.MethodGet, path, "")
		if status != http.StatusOK {
			return nil, fmt.Errorf("%s: %d %.200s", path, status, text)
		}
		return []byte(text), nil
	}
	d.eventually("its answers have the shape of a kubelet's", func() error {
		got, err := shape.All(get, "-"+d.host)
		if err != nil {
			return err
		}
		var differ []string
		for _, face := range shape.Faces {
			for _, line := range shape.Unexpected(face, shape.Diff(want[face], got[face])) {
				if strings.HasPrefix(line, "-") && strings.HasSuffix(line, " sandbox") && !d.on.HasSandboxProcess() {
					continue
				}
				differ = append(differ, face+" "+line)
			}
		}
		if len(differ) > 0 {
			return fmt.Errorf("%d differ:\n%s", len(differ), strings.Join(differ, "\n"))
		}
		return nil
	})
}
