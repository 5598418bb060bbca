package manifest

import "strings"

// KubernetesVersion is the version of Kubernetes whose defaults, validation, configuration and
// metrics podd implements. podd reports it as its version to programs that expect a kubelet.
// testdata/controlplane/doc.go describes how to move to another version.
const KubernetesVersion = "v1.37.2"

// KubernetesRelease returns the release of KubernetesVersion, such as "1.37".
func KubernetesRelease() string {
	return strings.TrimPrefix(KubernetesVersion[:strings.LastIndex(KubernetesVersion, ".")], "v")
}
