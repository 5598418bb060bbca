package daemon

import (
	"time"

	"podd/reconcile/volume"
	"podd/server/metrics"
)

// operationRecorder returns a function that records an operation on a volume in m.
func operationRecorder(m *metrics.Metrics) func(volume.Operation) {
	return func(o volume.Operation) {
		m.RecordVolumeOperation(o.Plugin, o.Name, o.Took, o.Err)
		if o.Name == volume.OperationMount && o.Err == nil {
			m.RecordMount(metrics.Mount{PodUID: o.PodUID, Volume: o.Volume, Plugin: o.Plugin, At: time.Now()})
		}
	}
}
