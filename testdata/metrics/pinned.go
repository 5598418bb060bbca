//go:build pinned

package metrics

// The program is built but not imported. This import prevents go mod tidy from removing its
// dependencies.
import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
