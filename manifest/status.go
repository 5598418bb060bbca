package manifest

import v1 "k8s.io/api/core/v1"

// IsTerminal reports whether a pod in phase p never runs again.
func IsTerminal(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }
