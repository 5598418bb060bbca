package kube

import (
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// VersionSuffix is appended to the version of Kubernetes in the version of podd's API. Clients
// derive the available features from the version.
const VersionSuffix = "-podd"

// newVersionInfo returns the response of /version for a version of Kubernetes such as "v1.37.2".
func newVersionInfo(kubernetes string) version.Info {
	numbers := strings.SplitN(strings.TrimPrefix(kubernetes, "v"), ".", 3)
	return version.Info{
		Major: numbers[0], Minor: numbers[1], GitVersion: kubernetes + VersionSuffix, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
