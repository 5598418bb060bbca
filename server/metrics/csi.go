package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// driverBuckets are the kubelet's buckets in seconds for calls that may take
// minutes.
var driverBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}

// driverCounts are the metrics about CSI drivers.
type driverCounts struct{ driverDuration *prometheus.HistogramVec }

func newDriverCounts() driverCounts {
	return driverCounts{newHistogramVec("csi_operations_seconds", "Duration in seconds of calls to CSI drivers.", driverBuckets, "driver_name", "method_name", "grpc_status_code", "migrated")}
}

// RecordDriverCall records a call of a CSI driver. method is the full gRPC method, such as
// "/csi.v1.Node/NodeStageVolume". The label migrated is always false, also for an in-tree volume of a cloud
// that a CSI driver provides, because podd translates such a volume before it is used.
func (c driverCounts) RecordDriverCall(driver, method, code string, duration time.Duration) {
	c.driverDuration.WithLabelValues(driver, method, code, "false").Observe(duration.Seconds())
}
