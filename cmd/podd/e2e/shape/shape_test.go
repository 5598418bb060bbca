package shape

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummaryFields(t *testing.T) {
	got, err := summaryFields([]byte(`{"node":{"cpu":{"time":"x"},"network":{"interfaces":[{"name":"eth0","rxBytes":1},{"name":"lo","rxBytes":1}]}},
"pods":[{"podRef":{"name":"web-n1"},"containers":[{"name":"b","rootfs":{"usedBytes":1}},{"name":"a"}]},{"podRef":{"name":"other-n2"},"x":1}]}`), "-n1")
	want := `node.cpu.time
node.network.interfaces[].name
node.network.interfaces[].rxBytes
pods[web].containers[a].name
pods[web].containers[b].name
pods[web].containers[b].rootfs.usedBytes
pods[web].podRef.name`
	if diff := cmp.Diff(want, strings.Join(got, "\n")); err != nil || diff != "" {
		t.Errorf("summaryFields: error %v, -want +got:\n%s", err, diff)
	}
	if _, err := summaryFields([]byte("{"), ""); err == nil {
		t.Error("summaryFields of invalid JSON: got no error, want one")
	}
}

func TestMetricNames(t *testing.T) {
	got := metricNames(`# HELP a what it is
# TYPE a counter
a{id="/x/kubepods",pod="",name="",container=""} 1
a{id="/",pod="",name="",container=""} 1
a{id="/system",pod="",name="",container=""} 1
a{id="/p",pod="web-n1",name="",container=""} 1 123
a{id="/p/s",pod="web-n1",name="s",container=""} 1
a{id="/p/c",pod="web-n1",name="a \"b\", {c",container="main"} 1
a{id="/p/c",pod="web-n2",name="c",container="main",more=""} 1
# TYPE b histogram
b_bucket{le="+Inf",path="x"} 1
b_sum{path="x"} 1
b_count{path="x"} 1
# TYPE c gauge
c 1
`, "-n1")
	want := `a counter container,id,name,pod container
a counter container,id,name,pod node
a counter container,id,name,pod pod
a counter container,id,name,pod pods
a counter container,id,name,pod sandbox
b histogram path
c gauge`
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Errorf("metricNames: -want +got:\n%s", diff)
	}
}

// TestExpectedDifferences_Missing checks that podd may lack a metric of a kubelet only if podd never serves
// it. Package server/metrics lists the metrics that podd serves in testdata/table.txt, and gives the reason for
// each other metric of a kubelet.
func TestExpectedDifferences_Missing(t *testing.T) {
	served := Parse(readFile(t, "../../../../server/metrics/testdata/table.txt"))["/metrics"]
	recorded := Parse(readFile(t, "../../../../testdata/kubelet/stats.txt"))["/metrics"]
	if len(served) == 0 || len(recorded) == 0 {
		t.Fatalf("got %d served and %d recorded metrics, want some", len(served), len(recorded))
	}
	isServed := map[string]bool{}
	for _, line := range served {
		name, _, _ := strings.Cut(line, " ")
		isServed[name] = true
		if isMissingExpected("-" + line) {
			t.Errorf("podd serves the metric %s, but an expected difference is that podd lacks it", name)
		}
	}
	for _, line := range recorded {
		name, _, _ := strings.Cut(line, " ")
		if !isServed[name] && len(Unexpected("/metrics", []string{"-" + line})) > 0 {
			t.Errorf("podd does not serve the metric %s of the kubelet, and this is no expected difference", name)
		}
	}
}

// isMissingExpected reports whether a line of /metrics is expected to be only in the response of a kubelet.
func isMissingExpected(line string) bool {
	return slices.ContainsFunc(expectedDifferences, func(e expectedDifference) bool {
		return e.endpoint.String() == "^/metrics$" && strings.HasPrefix(e.line.String(), "^-") && e.line.MatchString(line)
	})
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
