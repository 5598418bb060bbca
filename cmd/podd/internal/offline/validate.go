package offline

import (
	"context"
	"fmt"
	"os"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/filecheck"
	"podd/cmd/podd/internal/iostreams"
	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
)

// ValidateCmd is the podd validate command.
type ValidateCmd struct {
	Paths            []string `arg:"" name:"path|url" help:"Files, directories and URLs to validate. Use - for stdin." complete:"file"`
	Output           string   `short:"o" enum:"text,yaml,json,github,sarif" default:"text" placeholder:"FORMAT" help:"Output format. One of: text, json, yaml (the pods with all defaults), github, sarif."`
	Strict           bool     `help:"Report unknown and duplicate fields as errors."`
	HostnameOverride string   `placeholder:"NAME" help:"Name of the node on which the pods would run. Default: the hostname."`

	Version string `kong:"-"` // version of podd, for the output
}

// resultPrinter prints a filecheck.Result.
type resultPrinter struct {
	*filecheck.Result
	version string // version of podd
}

// Run checks every file and prints the problems. If a problem is an error, it returns an error
// with exit code 1. It starts no pods, and reads only the named files.
func (c *ValidateCmd) Run(ctx context.Context, s iostreams.Streams) error {
	node, err := c.nodeName()
	if err != nil {
		return err
	}
	r := filecheck.Check(filecheck.Read(ctx, c.Paths, s.In), decode.Options{NodeName: node, Strict: c.Strict})
	r.AddProblems(manifest.FindHostPortConflicts(r.Pods))
	r.AddProblems(refs.CheckMissing(r.Pods, r.Set.ObjectsBySource, manifest.Warning)) // only warnings, because the referenced objects may be added later
	out := &resultPrinter{r, c.Version}
	if err := out.print(c.Output, s); err != nil {
		return err
	}
	if errs, _ := out.countProblems(); errs > 0 {
		return exit.NewError(exit.Failed, nil)
	}
	return nil
}

// nodeName returns the node name. The node name matters because podd appends it to the names of
// pods, and the length of these names is limited.
func (c *ValidateCmd) nodeName() (string, error) {
	host := c.HostnameOverride
	if host == "" {
		h, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("reading the hostname: %w", err)
		}
		host = h
	}
	name, err := config.NormalizeNodeName(host)
	if err != nil && c.HostnameOverride == "" {
		return "localhost", nil // any valid name, because the check of files does not depend on a valid hostname
	}
	return name, err
}
