package metrics

import (
	"cmp"
	"strings"
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

// labelCounts contains the kubelet's metrics about volumes with SELinux labels. The kubelet counts with
// gauges.
type labelCounts struct {
	labeledVolumes, labelConflicts                                        *prometheus.GaugeVec // by plugin and access mode
	invalidLabels, ignoredInvalidLabels, podMismatches, ignoredMismatches *prometheus.GaugeVec // by access mode
}

func newLabelCounts() labelCounts {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "volume_manager_selinux_" + name, Help: help}, labels)
	}
	return labelCounts{
		labeledVolumes:       gauge("volumes_admitted_total", "Volumes of pods that were mounted with an SELinux label.", "volume_plugin", "access_mode"),
		labelConflicts:       gauge("volume_context_mismatch_errors_total", "Attempts to use a volume with an SELinux label while other pods use it with another label.", "volume_plugin", "access_mode"),
		invalidLabels:        gauge("container_errors_total", "Attempts to mount a volume for a container whose seLinuxOptions result in no label.", "access_mode"),
		ignoredInvalidLabels: gauge("container_warnings_total", "Mounts without an SELinux label for a container whose seLinuxOptions result in no label.", "access_mode"),
		podMismatches:        gauge("pod_context_mismatch_errors_total", "Attempts to mount a volume for containers with different SELinux labels.", "access_mode"),
		ignoredMismatches:    gauge("pod_context_mismatch_warnings_total", "Mounts without an SELinux label for containers with different labels.", "access_mode"),
	}
}

func (c labelCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.labeledVolumes, c.labelConflicts, c.invalidLabels, c.ignoredInvalidLabels, c.podMismatches, c.ignoredMismatches}
}

// A VolumeLabel is the result of mounting a volume with an SELinux label.
type VolumeLabel struct {
	// Plugin is the kubelet's name of the volume plugin, and AccessMode its abbreviation of the access
	// mode, such as "RWO".
	Plugin, AccessMode string
	Result             VolumeLabelResult
	// IsErrorIgnored reports whether the volume was mounted without a label, despite Result.
	IsErrorIgnored bool
}

// A VolumeLabelResult is the success or the kind of the error of a VolumeLabel.
type VolumeLabelResult int

const (
	LabelMounted    VolumeLabelResult = iota
	LabelInvalid                      // the options of a container result in no label
	LabelsDiffer                      // containers of the pod need different labels
	LabelConflicted                   // another pod uses the volume with another label
)

// RecordVolumeLabel records the result of mounting a volume with an SELinux label.
func (c labelCounts) RecordVolumeLabel(l VolumeLabel) {
	plugin := strings.Replace(l.Plugin, "/csi:", "/csi/", 1) // the kubelet's notation in these metrics
	switch {
	case l.Result == LabelMounted:
		c.labeledVolumes.WithLabelValues(plugin, l.AccessMode).Inc()
	case l.Result == LabelConflicted:
		c.labelConflicts.WithLabelValues(plugin, l.AccessMode).Inc()
	case l.Result == LabelInvalid && l.IsErrorIgnored:
		c.ignoredInvalidLabels.WithLabelValues(l.AccessMode).Inc()
	case l.Result == LabelInvalid:
		c.invalidLabels.WithLabelValues(l.AccessMode).Inc()
	case l.IsErrorIgnored:
		c.ignoredMismatches.WithLabelValues(l.AccessMode).Inc()
	default:
		c.podMismatches.WithLabelValues(l.AccessMode).Inc()
	}
}

// collectVolumes emits the number of desired and of existing volumes. As in the kubelet, a pod needs its
// volumes until its containers have stopped, and volumes that no container uses are not mounted.
// collectVolumes assumes that all other volumes of a pod exist while the pod has a sandbox.
func (s stateCollector) collectVolumes(v *server.View, emit emitter) {
	desired, existing := map[string]int{}, map[string]int{}
	for _, p := range v.Pods {
		isNeeded := p.RuntimeContainers.Running > 0 || p.Pod.DeletionTimestamp == nil && !isTerminal(p.Pod) && !s.isRejected(p)
		used := usedVolumes(&p.Pod.Spec)
		for i := range p.Pod.Spec.Volumes {
			v := &p.Pod.Spec.Volumes[i]
			if !used[v.Name] {
				continue
			}
			kind := cmp.Or(p.VolumePlugins[v.Name], volumeplugin.Name(v, nil))
			if isNeeded {
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

// usedVolumes returns the names of the volumes that a container mounts or uses as a block device.
func usedVolumes(p *v1.PodSpec) map[string]bool {
	used := map[string]bool{}
	add := func(mounts []v1.VolumeMount, devices []v1.VolumeDevice) {
		for i := range mounts {
			used[mounts[i].Name] = true
		}
		for i := range devices {
			used[devices[i].Name] = true
		}
	}
	for _, containers := range [][]v1.Container{p.InitContainers, p.Containers} {
		for i := range containers {
			add(containers[i].VolumeMounts, containers[i].VolumeDevices)
		}
	}
	for i := range p.EphemeralContainers {
		add(p.EphemeralContainers[i].VolumeMounts, p.EphemeralContainers[i].VolumeDevices)
	}
	return used
}
