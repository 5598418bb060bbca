//go:build pinned

package metrics

// The program is built and never imported; go mod tidy keeps what it needs.
import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
