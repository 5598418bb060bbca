package metrics

import "github.com/prometheus/client_golang/prometheus"

// imageVolumeCounts are the metrics about image volumes.
type imageVolumeCounts struct{ requested, mounted, failed prometheus.Counter }

func newImageVolumeCounts() imageVolumeCounts {
	return imageVolumeCounts{
		requested: newCounter("kubelet_image_volume_requested_total", "Image volumes of the containers that podd has tried to start."),
		mounted:   newCounter("kubelet_image_volume_mounted_succeed_total", "Mounts of image volumes in containers that have started."),
		failed:    newCounter("kubelet_image_volume_mounted_errors_total", "Mounts of image volumes in containers that the runtime could not create because mounting an image failed."),
	}
}

func (c imageVolumeCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.requested, c.mounted, c.failed}
}

// ImageVolumes describes the image volumes of a container, and the result of an attempt to start
// the container.
type ImageVolumes struct {
	Volumes, Mounts int  // the number of volumes, and of the container's mounts of these volumes
	HasStarted      bool // whether the container has started
	HasMountFailed  bool // whether the runtime failed to mount an image
}

// RecordImageVolumes records an attempt to start a container with image volumes.
func (c podCounts) RecordImageVolumes(v ImageVolumes) {
	c.imageVolumes.requested.Add(float64(v.Volumes))
	switch {
	case v.HasStarted:
		c.imageVolumes.mounted.Add(float64(v.Mounts))
	case v.HasMountFailed:
		c.imageVolumes.failed.Add(float64(v.Mounts))
	}
}
