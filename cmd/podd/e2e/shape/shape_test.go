package shape

import (
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
