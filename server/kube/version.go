package kube

import (
	"runtime"

	"k8s.io/apimachinery/pkg/version"
)

// GitVersion is the Kubernetes version of the served API. Clients use it to
// determine the available features.
const GitVersion = "v1.34.4-podd"

func versionInfo() version.Info {
	return version.Info{
		Major: "1", Minor: "34", GitVersion: GitVersion, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
