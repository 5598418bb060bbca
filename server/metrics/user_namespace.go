package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// userNamespaceCounts contains the metrics about pods with a user namespace. An attempt to start such a
// pod fails if its sandbox cannot be created or if its first container cannot be started, because
// runtimes report many problems with user namespaces only then. A kubelet also counts an attempt as
// failed if a pull or another container fails.
type userNamespaceCounts struct {
	started, failed prometheus.Counter
	*startingPods
}

// A startingPods records the UIDs of the pods with a user namespace that have a new sandbox, until
// the result for their first container is known.
type startingPods struct {
	mu   sync.Mutex // guards all following fields
	uids map[types.UID]bool
}

func newUserNamespaceCounts() userNamespaceCounts {
	return userNamespaceCounts{
		started:      newCounter("kubelet_started_user_namespaced_pods_total", "Attempts to start a pod with a user namespace."),
		failed:       newCounter("kubelet_started_user_namespaced_pods_errors_total", "Failed attempts to start a pod with a user namespace."),
		startingPods: &startingPods{uids: map[types.UID]bool{}},
	}
}

func (c userNamespaceCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.started, c.failed}
}

// recordSandbox records an attempt to create a sandbox with a user namespace.
func (c userNamespaceCounts) recordSandbox(uid types.UID, err error) {
	c.started.Inc()
	if err != nil {
		c.failed.Inc()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uids[uid] = true
}

// recordContainerStart records an attempt to start a container of any pod.
func (c userNamespaceCounts) recordContainerStart(uid types.UID, hasFailed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uids[uid] && hasFailed {
		c.failed.Inc()
	}
	delete(c.uids, uid)
}

// stopTracking removes a pod that was deleted or replaced.
func (c userNamespaceCounts) stopTracking(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.uids, uid)
}
