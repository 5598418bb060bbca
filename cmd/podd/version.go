package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is stamped by the linker: -X main.version=v1.2.3.
var version string

// kubernetesVersion is that of the kubelet podd stands in for.
const kubernetesVersion = "v1.34.4"

// VersionCmd is podd version.
type VersionCmd struct {
	Output string `short:"o" enum:"text,json,yaml" default:"text" placeholder:"FORMAT" help:"text, json or yaml."`
}

// versionInfo is the JSON of podd version.
type versionInfo struct {
	Version    string `json:"version"`
	Revision   string `json:"revision,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes"`
}

// Run prints the version.
func (c *VersionCmd) Run(_ context.Context, s Streams) error {
	if c.Output == "text" {
		return printVersion(s.Out, "podd", "")
	}
	return asData(s.Out, c.Output, thisVersion())
}

// thisVersion is the stamped version, or else what the build knows of itself.
func thisVersion() versionInfo {
	v := versionInfo{
		Version:    version,
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
		Kubernetes: kubernetesVersion,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	if v.Version == "" && build.Main.Version != "(devel)" {
		v.Version = build.Main.Version
	}
	if v.Version == "" {
		v.Version = "v0.0.0-dev"
	}
	return v
}

// printVersion answers --version. Called as the kubelet, it is the kubelet's
// answer, which kubeadm and node tools parse.
func printVersion(w io.Writer, program, flag string) error {
	if name, value, _ := strings.Cut(flag, "="); name != "" && name != "--version" || value == "false" {
		return exitWith(codeUsage, fmt.Errorf("unknown flag %s; did you mean --version?", flag))
	}
	if program == "kubelet" {
		_, err := fmt.Fprintf(w, "Kubernetes %s\n", kubernetesVersion)
		return err
	}
	v := thisVersion()
	_, err := fmt.Fprintf(w, "podd %s (%s)\n", v.Version, v.Go)
	return err
}
