package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/manifest"
)

// version is the version of a release. The linker sets it with -X main.version=v1.2.3; otherwise it
// is "".
var version string

// versionCmd is the verb "podd version".
type versionCmd struct {
	Output string `short:"o" enum:"text,json,yaml" default:"text" placeholder:"FORMAT" help:"Output format. One of: text, json, yaml."`
}

// versionInfo is the output of "podd version -o json".
type versionInfo struct {
	Version    string `json:"version"`
	Revision   string `json:"revision,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes"`
}

// Run prints the version.
func (c *versionCmd) Run(_ context.Context, s iostreams.Streams) error {
	if c.Output == "text" {
		return printVersion(s.Out, "podd", "")
	}
	return printer.WriteData(s.Out, c.Output, thisVersion())
}

// thisVersion returns the version of this program: the version that the linker has set, or
// otherwise the version in the build information.
func thisVersion() versionInfo {
	v := versionInfo{
		Version:    version,
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
		Kubernetes: manifest.KubernetesVersion,
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

// printVersion prints the output of --version. If program is kubelet, it prints the output of the
// kubelet, because kubeadm and other tools parse this output.
func printVersion(w io.Writer, program, flag string) error {
	if name, value, _ := strings.Cut(flag, "="); name != "" && name != "--version" || value == "false" {
		return exit.NewError(exit.Usage, fmt.Errorf("unknown flag %s; did you mean --version?", flag))
	}
	if program == "kubelet" {
		_, err := fmt.Fprintf(w, "Kubernetes %s\n", manifest.KubernetesVersion)
		return err
	}
	v := thisVersion()
	_, err := fmt.Fprintf(w, "podd %s (%s)\n", v.Version, v.Go)
	return err
}
