package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Disks is what pods have on disk, as it was measured last.
type Disks struct {
	Claims []Claim
	Logs   []Log
}

// Claim is the volume of a PersistentVolumeClaim that a pod uses.
type Claim struct {
	Namespace, Name                string
	Capacity, Available, Used      float64 // in bytes
	Inodes, InodesFree, InodesUsed float64
	// Abnormal is whether something is wrong with it; nil: nobody says.
	Abnormal *bool
}

// Log is what the logs of a container take.
type Log struct {
	Namespace, Pod, UID, Container string
	Bytes                          float64
}

var (
	ofClaim     = []string{"namespace", "persistentvolumeclaim"}
	claimCap    = desc("kubelet_volume_stats_capacity_bytes", "The size of the volume of a claim.", ofClaim...)
	claimLeft   = desc("kubelet_volume_stats_available_bytes", "What is left in the volume of a claim.", ofClaim...)
	claimUsed   = desc("kubelet_volume_stats_used_bytes", "What the volume of a claim holds.", ofClaim...)
	claimInodes = desc("kubelet_volume_stats_inodes", "How many inodes the volume of a claim may have.", ofClaim...)
	claimFree   = desc("kubelet_volume_stats_inodes_free", "How many inodes are left in the volume of a claim.", ofClaim...)
	claimFiles  = desc("kubelet_volume_stats_inodes_used", "How many inodes the volume of a claim has.", ofClaim...)
	claimIll    = desc("kubelet_volume_stats_health_status_abnormal", "1 where the driver of a claim's volume says that something is wrong with it, else 0.", ofClaim...)
	logBytes    = desc("kubelet_container_log_filesystem_used_bytes", "What the logs of a container take on disk.", "uid", "namespace", "pod", "container")
)

// diskTime is how long measuring disks may keep the other metrics waiting.
const diskTime = 2 * time.Second

// disksOf tells what pods have on disk when it is asked.
type disksOf func(ctx context.Context) (*Disks, error)

// Describe implements prometheus.Collector.
func (disksOf) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{claimCap, claimLeft, claimUsed, claimInodes, claimFree, claimFiles, claimIll, logBytes} {
		to <- d
	}
}

// Collect implements prometheus.Collector. What could not be measured is left out:
// the rest is of use without it.
func (f disksOf) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), diskTime)
	defer cancel()
	d, err := f(ctx)
	if err != nil {
		return
	}
	tell := telling(to)
	told := map[[2]string]bool{} // several pods may use one claim
	for _, c := range d.Claims {
		if key := [2]string{c.Namespace, c.Name}; !told[key] {
			told[key] = true
			c.tell(tell)
		}
	}
	for _, l := range d.Logs {
		tell(logBytes, l.Bytes, l.UID, l.Namespace, l.Pod, l.Container)
	}
}

func (c Claim) tell(tell teller) {
	for d, n := range map[*prometheus.Desc]float64{
		claimCap: c.Capacity, claimLeft: c.Available, claimUsed: c.Used,
		claimInodes: c.Inodes, claimFree: c.InodesFree, claimFiles: c.InodesUsed,
	} {
		tell(d, n, c.Namespace, c.Name)
	}
	if c.Abnormal != nil {
		ill := 0.0
		if *c.Abnormal {
			ill = 1
		}
		tell(claimIll, ill, c.Namespace, c.Name)
	}
}
