package metrics

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestNodeConfigCounts checks the metrics of a ConfigMap that was rejected, so that local files stay in use.
func TestNodeConfigCounts(t *testing.T) {
	c := newNodeConfigCounts()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.collectors()...)
	// gather returns the labels and the value of each metric, without the prefix of the labels.
	gather := func() map[string]string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, f := range families {
			for _, m := range f.Metric {
				text := ""
				for _, l := range m.Label {
					text += l.GetValue() + " "
				}
				all[f.GetName()] += text + fmt.Sprint(m.Gauge.GetValue())
			}
		}
		return all
	}
	if got := gather(); len(got) != 0 {
		t.Errorf("metrics without dynamic configuration: got %v, want none", got)
	}
	files := NodeConfig{Digest: "d1"}
	c.RecordNodeConfig(files, files, NodeConfig{}, false)
	c.RecordNodeConfig(NodeConfig{Digest: "d2", Namespace: "kube-system", Name: "edge", Key: "kubelet", UID: "u", ResourceVersion: "7"}, files, files, true)
	want := map[string]string{
		"kubelet_node_config_assigned":        "kubelet 7 /api/v1/namespaces/kube-system/configmaps/edge u 1",
		"kubelet_node_config_active":          " d1 local  1",
		"kubelet_node_config_last_known_good": " d1 local  1",
		"kubelet_node_config_error":           "1",
	}
	if diff := cmp.Diff(want, gather()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
