// Package pressure decides whether the node is short of a resource, and which pod is evicted then.
// The rules are those of a kubelet (pkg/kubelet/eviction), except where this comment names a
// difference.
//
//	Policy, Observations, State ─▶ Decide ─▶ node conditions, thresholds to act on
//	Candidates                  ─▶ Rank   ─▶ order in which pods are evicted
//
// A threshold is met while the available amount of its signal is less than its limit. A hard
// threshold has no grace period: the node must reclaim the resource at once. A soft threshold must
// be met for its grace period without interruption. A threshold that is due remains due until the
// available amount has reached the limit plus the minimum reclaim. A node condition is true while
// one of its thresholds is met, and for the transition period after that.
//
// If a signal is not observed, its thresholds keep their state, but none of them is due. A kubelet
// considers such a threshold not met. So in podd, a runtime that does not respond for a moment
// ends neither a grace period nor a condition.
//
// The file systems of the node are nodefs (volumes and logs), imagefs (images) and containerfs (the
// writable layers of containers). Two or all of them may be the same file system; a Layout contains
// their IDs. The Layout determines which files of a pod and which reclaimable objects are on
// the file system of a signal. The thresholds of containerfs equal those of imagefs, or those of
// nodefs if the layers are not stored on a separate imagefs.
//
// Pods with a priority of at least that of system-cluster-critical are never evicted. A kubelet never
// evicts a static pod, either. podd evicts a pod of a file or URL like other pods, because podd
// starts it again when the pressure is over. Mirror pods do not run, so they are never evicted.
package pressure
