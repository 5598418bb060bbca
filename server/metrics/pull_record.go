package metrics

import "github.com/prometheus/client_golang/prometheus"

var (
	pullIntentsDesc = prometheus.NewDesc("kubelet_imagemanager_ondisk_pullintents", "Stored intents of image pulls that are in progress or were interrupted.", nil, nil)
	pullRecordsDesc = prometheus.NewDesc("kubelet_imagemanager_ondisk_pulledrecords", "Stored records of images that were pulled.", nil, nil)
)

// pullRecordCollector collects the numbers of intents and records of image pulls.
type pullRecordCollector func() (intents, records int)

// Describe implements prometheus.Collector.
func (pullRecordCollector) Describe(to chan<- *prometheus.Desc) {
	to <- pullIntentsDesc
	to <- pullRecordsDesc
}

// Collect implements prometheus.Collector.
func (f pullRecordCollector) Collect(to chan<- prometheus.Metric) {
	intents, records := f()
	emit := newEmitter(to)
	emit(pullIntentsDesc, float64(intents))
	emit(pullRecordsDesc, float64(records))
}
