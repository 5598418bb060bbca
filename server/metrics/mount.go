package metrics

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Mount describes a successful mount of a volume of a pod.
type Mount struct {
	PodUID types.UID
	Volume string // the name of the volume in the pod
	Plugin string // the kubelet's name of the volume plugin
	At     time.Time
}

// RecordMount records a mount. Only the first mount of a volume of a pod that has not started yet has an
// effect, because only this mount has made a pod wait.
func (c startCounts) RecordMount(m Mount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byUID[m.PodUID]
	if s == nil || s.mounted[m.Volume] {
		return
	}
	if s.mounted == nil {
		s.mounted = map[string]bool{}
	}
	s.mounted[m.Volume] = true
	c.mountDuration.WithLabelValues(m.Plugin, "overall_volume_mount").Observe(max(m.At.Sub(s.observedAt), 0).Seconds())
}
