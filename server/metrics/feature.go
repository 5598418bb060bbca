package metrics

import "github.com/prometheus/client_golang/prometheus"

var featureDesc = prometheus.NewDesc("kubernetes_feature_enabled", "Whether a feature of the kubelet is enabled in podd: 1 or 0, by name and stage of the feature gate.", []string{"name", "stage"}, nil)

// featureCollector collects the values of the feature gates; see Inputs.FeatureGates.
type featureCollector func(visit func(name, stage string, isEnabled bool))

// Describe implements prometheus.Collector.
func (featureCollector) Describe(to chan<- *prometheus.Desc) { to <- featureDesc }

// Collect implements prometheus.Collector.
func (f featureCollector) Collect(to chan<- prometheus.Metric) {
	emit := newEmitter(to)
	f(func(name, stage string, isEnabled bool) {
		value := 0.0
		if isEnabled {
			value = 1
		}
		emit(featureDesc, value, name, stage)
	})
}
