package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DiskUsage is the last measurement of the disk usage of pods.
type DiskUsage struct {
	Claims []ClaimUsage
	Logs   []LogUsage
}

// ClaimUsage is the usage of the volume of a PersistentVolumeClaim that a pod uses.
type ClaimUsage struct {
	Namespace, Name                          string
	CapacityBytes, AvailableBytes, UsedBytes float64
	Inodes, InodesFree, InodesUsed           float64
}

// LogUsage is the disk usage of a container's logs.
type LogUsage struct {
	Namespace, Pod, UID, Container string
	Bytes                          float64
}

var (
	claimLabels         = []string{"namespace", "persistentvolumeclaim"}
	claimCapacityDesc   = newDesc("kubelet_volume_stats_capacity_bytes", "Capacity in bytes of the volume of a PersistentVolumeClaim.", claimLabels...)
	claimAvailableDesc  = newDesc("kubelet_volume_stats_available_bytes", "Available bytes of the volume of a PersistentVolumeClaim.", claimLabels...)
	claimUsedDesc       = newDesc("kubelet_volume_stats_used_bytes", "Used bytes of the volume of a PersistentVolumeClaim.", claimLabels...)
	claimInodesDesc     = newDesc("kubelet_volume_stats_inodes", "Maximum number of inodes of the volume of a PersistentVolumeClaim.", claimLabels...)
	claimInodesFreeDesc = newDesc("kubelet_volume_stats_inodes_free", "Number of free inodes of the volume of a PersistentVolumeClaim.", claimLabels...)
	claimInodesUsedDesc = newDesc("kubelet_volume_stats_inodes_used", "Number of used inodes of the volume of a PersistentVolumeClaim.", claimLabels...)
	logBytesDesc        = newDesc("kubelet_container_log_filesystem_used_bytes", "Disk usage in bytes of the logs of a container.", "uid", "namespace", "pod", "container")
)

// diskTimeout limits the time for which measuring disks may delay the other
// metrics.
const diskTimeout = 2 * time.Second

// A diskCollector collects metrics of the disk usage of pods. It is a function that returns a
// recent measurement.
type diskCollector func(ctx context.Context) (*DiskUsage, error)

// Describe implements prometheus.Collector.
func (diskCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{claimCapacityDesc, claimAvailableDesc, claimUsedDesc, claimInodesDesc, claimInodesFreeDesc, claimInodesUsedDesc, logBytesDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector. If measuring fails, Collect emits neither metrics nor an
// error, because the other metrics are useful without the disk usage.
func (f diskCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), diskTimeout)
	defer cancel()
	d, err := f(ctx)
	if err != nil {
		return
	}
	emit := newEmitter(to)
	emitted := map[[2]string]bool{} // several pods may use a claim, but its metrics are emitted once
	for _, c := range d.Claims {
		if key := [2]string{c.Namespace, c.Name}; !emitted[key] {
			emitted[key] = true
			c.collect(emit)
		}
	}
	for _, l := range d.Logs {
		emit(logBytesDesc, l.Bytes, l.UID, l.Namespace, l.Pod, l.Container)
	}
}

func (c ClaimUsage) collect(emit emitter) {
	for d, n := range map[*prometheus.Desc]float64{
		claimCapacityDesc: c.CapacityBytes, claimAvailableDesc: c.AvailableBytes, claimUsedDesc: c.UsedBytes,
		claimInodesDesc: c.Inodes, claimInodesFreeDesc: c.InodesFree, claimInodesUsedDesc: c.InodesUsed,
	} {
		emit(d, n, c.Namespace, c.Name)
	}
}
