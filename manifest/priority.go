package manifest

// CriticalPriority is the lowest priority of critical pods. It is the priority of the built-in
// priority class system-cluster-critical.
const CriticalPriority int32 = 2_000_000_000
