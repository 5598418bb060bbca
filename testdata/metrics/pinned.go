//go:build pinned

package metrics

// The program is built but not imported. With this import go mod tidy keeps its dependencies.
import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
