//go:build pinned

package oldest

// Programs that are built but not imported. With these imports go mod tidy keeps their
// dependencies.
import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
