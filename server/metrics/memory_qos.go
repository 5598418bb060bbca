package metrics

import "github.com/prometheus/client_golang/prometheus"

// memoryProtection contains the metrics about the memory that the kernel protects from reclaim.
type memoryProtection struct{ protectedMin, protectedLow prometheus.Gauge }

func newMemoryProtection() memoryProtection {
	return memoryProtection{
		protectedMin: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubelet_memory_qos_node_memory_min_bytes",
			Help: "Memory in bytes of all Guaranteed pods that the kernel never reclaims (memory.min). 0 unless memoryReservationPolicy is TieredReservation.",
		}),
		protectedLow: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubelet_memory_qos_node_memory_low_bytes",
			Help: "Memory in bytes of all Burstable pods that the kernel reclaims last (memory.low). 0 unless memoryReservationPolicy is TieredReservation.",
		}),
	}
}

func (p memoryProtection) collectors() []prometheus.Collector {
	return []prometheus.Collector{p.protectedMin, p.protectedLow}
}

// SetMemoryProtection sets the memory in bytes that the kernel protects. The parameter guaranteed
// is the memory of all Guaranteed pods, and the parameter burstable is that of all Burstable pods.
func (p memoryProtection) SetMemoryProtection(guaranteed, burstable int64) {
	p.protectedMin.Set(float64(guaranteed))
	p.protectedLow.Set(float64(burstable))
}
