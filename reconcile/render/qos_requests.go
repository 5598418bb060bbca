package render

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// QOSRequests contains the requests that determine the settings of the cgroups of QoS classes. They
// are the requests of one pod, or the sum of the requests of all pods on the node.
type QOSRequests struct {
	BurstableMilliCPU int64
	BurstableMemory   int64 // bytes
	GuaranteedMemory  int64 // bytes
}

// NewQOSRequests returns the requests of one pod.
func NewQOSRequests(pod *v1.Pod) QOSRequests {
	requests := manifest.PodRequests(pod)
	switch manifest.QoS(pod) {
	case v1.PodQOSBurstable:
		return QOSRequests{BurstableMilliCPU: requests.Cpu().MilliValue(), BurstableMemory: requests.Memory().Value()}
	case v1.PodQOSGuaranteed:
		return QOSRequests{GuaranteedMemory: requests.Memory().Value()}
	}
	return QOSRequests{}
}

// Add returns the sum of q and r.
func (q QOSRequests) Add(r QOSRequests) QOSRequests {
	return QOSRequests{q.BurstableMilliCPU + r.BurstableMilliCPU, q.BurstableMemory + r.BurstableMemory, q.GuaranteedMemory + r.GuaranteedMemory}
}

// Sub returns the difference of q and r.
func (q QOSRequests) Sub(r QOSRequests) QOSRequests {
	return QOSRequests{q.BurstableMilliCPU - r.BurstableMilliCPU, q.BurstableMemory - r.BurstableMemory, q.GuaranteedMemory - r.GuaranteedMemory}
}
