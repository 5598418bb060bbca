package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// userNamespaceCounts contains the metrics about pods with a user namespace. An attempt to start such a
// pod fails if its sandbox cannot be created or if its first container cannot be started, because
// runtimes report many problems with user namespaces only then. A kubelet also counts an attempt as
// failed if a pull or another container fails.
type userNamespaceCounts struct {
	started, failed prometheus.Counter
	// starting contains the pods that have a new sandbox, until the result for their first container is
	// known.
	starting *podSet
}

func newUserNamespaceCounts() userNamespaceCounts {
	return userNamespaceCounts{
		started:  newCounter("kubelet_started_user_namespaced_pods_total", "Attempts to start a pod with a user namespace."),
		failed:   newCounter("kubelet_started_user_namespaced_pods_errors_total", "Failed attempts to start a pod with a user namespace."),
		starting: newPodSet(),
	}
}

func (c userNamespaceCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.started, c.failed}
}

// recordSandbox records an attempt to create a sandbox with a user namespace.
func (c userNamespaceCounts) recordSandbox(s Sandbox) {
	c.started.Inc()
	switch {
	case s.Canceled:
	case s.Err != nil:
		c.failed.Inc()
	default:
		c.starting.add(s.UID)
	}
}

// recordContainerStart records an attempt to start a container of any pod.
func (c userNamespaceCounts) recordContainerStart(uid types.UID, hasFailed bool) {
	if c.starting.remove(uid) && hasFailed {
		c.failed.Inc()
	}
}
