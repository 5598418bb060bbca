package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"podd/manifest/volumeplugin"
	"podd/server"
)

// volumeCounts contains the metrics about operations on volumes.
type volumeCounts struct{ volumeOperations, volumeMeasurements *prometheus.HistogramVec }

func newVolumeCounts() volumeCounts {
	return volumeCounts{
		volumeOperations: newHistogramVec("storage_operation_duration_seconds",
			"Duration in seconds of operations on volumes, by plugin, operation and result. The volumes of a pod are unmounted together, and each has the total duration.",
			driverBuckets, "volume_plugin", "operation_name", "status", "migrated"),
		volumeMeasurements: newHistogramVec("kubelet_volume_metric_collection_duration_seconds",
			"Duration in seconds of measuring the disk usage of a volume, by source: du, or the name of the CSI driver.", prometheus.DefBuckets, "metric_source"),
	}
}

// RecordVolumeMeasurement records that the disk usage of a volume was measured. source is "du" or the
// name of the CSI driver of the volume.
func (c volumeCounts) RecordVolumeMeasurement(source string, duration time.Duration) {
	c.volumeMeasurements.WithLabelValues(source).Observe(duration.Seconds())
}

// RecordVolumeOperation records an operation on a volume. plugin is the kubelet's name of the volume
// plugin, and operation is the kubelet's name of the operation, such as "volume_mount". The label
// migrated is always false, as in RecordDriverCall.
func (c volumeCounts) RecordVolumeOperation(plugin, operation string, duration time.Duration, err error) {
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	c.volumeOperations.WithLabelValues(plugin, operation, status, "false").Observe(duration.Seconds())
}

// collectVolumes emits the number of desired and of existing volumes. It assumes that all volumes
// of a pod exist while the pod has a sandbox.
func collectVolumes(v *server.View, emit emitter) {
	desired, existing := map[string]int{}, map[string]int{}
	for _, p := range v.Pods {
		for i := range p.Pod.Spec.Volumes {
			kind := volumeplugin.Name(&p.Pod.Spec.Volumes[i], nil)
			if p.Pod.DeletionTimestamp == nil && p.Pod.Status.Phase != v1.PodSucceeded && p.Pod.Status.Phase != v1.PodFailed {
				desired[kind]++
			}
			if p.SandboxID != "" {
				existing[kind]++
			}
		}
	}
	for state, counts := range map[string]map[string]int{"desired_state_of_world": desired, "actual_state_of_world": existing} {
		for kind, n := range counts {
			emit(volumeCountDesc, float64(n), kind, state)
		}
	}
}
