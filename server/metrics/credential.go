package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// credentialCounts contains the metrics about credential provider plugins. Without plugins, they have no
// series.
type credentialCounts struct {
	pluginErrors   *prometheus.CounterVec
	pluginDuration *prometheus.HistogramVec
	configInfo     *prometheus.GaugeVec
}

// newCredentialCounts returns credentialCounts. configHash is Options.CredentialConfigHash.
func newCredentialCounts(configHash string) credentialCounts {
	c := credentialCounts{
		pluginErrors:   newCounterVec("kubelet_credential_provider_plugin_errors_total", "Failed runs of a credential provider plugin.", "plugin_name"),
		pluginDuration: newHistogramVec("kubelet_credential_provider_plugin_duration", "Duration in seconds of runs of a credential provider plugin.", prometheus.DefBuckets, "plugin_name"),
		configInfo: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubelet_credential_provider_config_info", Help: "Hash of the configuration of credential provider plugins. The value is always 1.",
		}, []string{"hash"}),
	}
	if configHash != "" {
		c.configInfo.WithLabelValues(configHash).Set(1)
	}
	return c
}

func (c credentialCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.pluginErrors, c.pluginDuration, c.configInfo}
}

// RecordCredentialProvider records a run of a credential provider plugin. hasFailed reports whether the
// program failed or timed out.
func (c credentialCounts) RecordCredentialProvider(plugin string, duration time.Duration, hasFailed bool) {
	c.pluginDuration.WithLabelValues(plugin).Observe(duration.Seconds())
	if hasFailed {
		c.pluginErrors.WithLabelValues(plugin).Inc()
	}
}
