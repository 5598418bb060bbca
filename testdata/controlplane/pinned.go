//go:build pinned

package controlplane

// Programs that are built and never imported; go mod tidy keeps what they need.
import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/images/agnhost"
)
