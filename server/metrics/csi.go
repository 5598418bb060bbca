package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// driverBuckets are the kubelet's, of calls that may take minutes.
var driverBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}

// driverCounts are of the drivers of the Container Storage Interface.
type driverCounts struct{ driverTook *prometheus.HistogramVec }

func newDriverCounts() driverCounts {
	return driverCounts{histograms("csi_operations_seconds", "How long calls of CSI drivers took.", driverBuckets, "driver_name", "method_name", "grpc_status_code", "migrated")}
}

// Driver counts a call of a CSI driver, by its whole name, "/csi.v1.Node/NodeStageVolume".
// Volumes of plugins that a kubelet had before are not podd's: none is migrated.
func (c driverCounts) Driver(driver, method, code string, took time.Duration) {
	c.driverTook.WithLabelValues(driver, method, code, "false").Observe(took.Seconds())
}
