package dynconfig

// Health describes which peers of podd respond. The zero value means that none does.
type Health struct {
	Runtime    bool `json:"runtime"`
	APIServer  bool `json:"apiServer"`  // false without a cluster
	HasCluster bool `json:"hasCluster"` // podd is a node of a cluster
}

// isComplete reports whether all peers respond.
func (h Health) isComplete() bool { return h.Runtime && (h.APIServer || !h.HasCluster) }

// or returns the peers that respond in h or in other.
func (h Health) or(other Health) Health {
	return Health{Runtime: h.Runtime || other.Runtime, APIServer: h.APIServer || other.APIServer, HasCluster: h.HasCluster || other.HasCluster}
}

// lostPeer returns the name of a peer that responds in before and not in h, or "" if there is none.
// hasResponded reports whether this peer responds in reached. Without a cluster, the API server is not lost,
// because podd may have been started without --kubeconfig since.
func (h Health) lostPeer(before, reached Health) (name string, hasResponded bool) {
	switch {
	case before.Runtime && !h.Runtime:
		return "the container runtime", reached.Runtime
	case before.APIServer && h.HasCluster && !h.APIServer:
		return "the API server", reached.APIServer
	}
	return "", false
}
