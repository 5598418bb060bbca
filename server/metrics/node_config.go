package metrics

import (
	"cmp"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// nodeConfigCounts contains the metrics about dynamic configuration, with the names that kubelets 1.11
// to 1.23 used. They are served only if podd uses dynamic configuration.
type nodeConfigCounts struct {
	assigned, active, lastKnownGood, failed *prometheus.GaugeVec
}

// A NodeConfig identifies a configuration. The zero value means that there is none.
type NodeConfig struct {
	Digest string
	// Namespace, Name, Key, UID and ResourceVersion identify the ConfigMap with the configuration. They are
	// "" for local files.
	Namespace, Name, Key, UID, ResourceVersion string
}

func newNodeConfigCounts() nodeConfigCounts {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubelet_node_config_" + name, Help: help}, labels)
	}
	labels := []string{"node_config_kubelet_key", "node_config_resource_version", "node_config_source", "node_config_uid"}
	return nodeConfigCounts{
		assigned:      gauge("assigned", "The configuration that the user has assigned. The value is 1. For local files, the source is local and the resource version is the digest of the content.", labels...),
		active:        gauge("active", "The configuration in use. The value is 1.", labels...),
		lastKnownGood: gauge("last_known_good", "The last known good configuration, to which podd returns if another one fails. The value is 1.", labels...),
		failed:        gauge("error", "1 if the assigned configuration cannot be used, and 0 otherwise."),
	}
}

func (c nodeConfigCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.assigned, c.active, c.lastKnownGood, c.failed}
}

// RecordNodeConfig records which configurations are in use, and whether the assigned one cannot be used.
func (c nodeConfigCounts) RecordNodeConfig(assigned, active, lastKnownGood NodeConfig, hasFailed bool) {
	setNodeConfig(c.assigned, assigned)
	setNodeConfig(c.active, active)
	setNodeConfig(c.lastKnownGood, lastKnownGood)
	value := 0.0
	if hasFailed {
		value = 1
	}
	c.failed.WithLabelValues().Set(value)
}

// setNodeConfig replaces the only value of a metric.
func setNodeConfig(g *prometheus.GaugeVec, c NodeConfig) {
	g.Reset()
	if c == (NodeConfig{}) {
		return
	}
	source := "local"
	if c.Name != "" {
		source = fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s", c.Namespace, c.Name)
	}
	g.WithLabelValues(c.Key, cmp.Or(c.ResourceVersion, c.Digest), source, c.UID).Set(1)
}
