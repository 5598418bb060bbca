package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/nodename"
	"podd/cmd/podd/internal/paths"
	"podd/server"
)

// fetchRunningView returns the state of the running podd that uses the root directory of cfg, or nil
// if no such podd is running. It copies four settings of the running podd to cfg unless the
// command line sets them: root directory, run directory, node name and runtime endpoint.
func fetchRunningView(ctx context.Context, flags *config.Flags, cfg *config.Config, stderr io.Writer) *server.View {
	if flags.HostnameOverride == "" {
		if record, err := nodename.Read(cfg.RootDir); err != nil {
			fmt.Fprintf(stderr, "podd: warning: %v\n", err)
		} else if record.Name != "" {
			cfg.NodeName = record.Name
		}
	}
	p, err := client.Flags{RunDir: cmp.Or(flags.RunDir, os.Getenv("PODD_RUN_DIR"))}.Connect(ctx)
	var v *server.View
	if err == nil {
		v, err = p.FetchView(ctx)
	}
	if err != nil {
		if notRunningErr := (client.NotRunningError{}); !errors.As(err, &notRunningErr) {
			fmt.Fprintf(stderr, "podd: warning: %v; continuing without the state of the running podd\n", err)
		}
		return nil
	}
	if v.RootDir == "" || flags.RootDir != "" && cfg.RootDir != v.RootDir {
		return nil
	}
	cfg.RootDir = v.RootDir
	if dir, err := filepath.Abs(p.RunDir()); err == nil && flags.RunDir == "" {
		cfg.RunDir = dir
	}
	if flags.HostnameOverride == "" {
		cfg.NodeName = v.Node
	}
	if flags.ContainerRuntimeEndpoint == nil && v.Endpoint != "" {
		cfg.RuntimeEndpoint = v.Endpoint
	}
	return v
}

// useRunningSources sets the sources of cfg to the sources of the running podd, unless cfg has
// sources.
func useRunningSources(running *server.View, cfg *config.Sources) {
	if running == nil || len(cfg.ManifestPaths)+len(cfg.ManifestURLs) > 0 {
		return
	}
	cfg.APIManifestDir = running.WritableSource
	for _, s := range running.Sources {
		switch {
		case s == running.WritableSource, s == server.ClusterSource:
		case paths.IsURL(s):
			cfg.ManifestURLs = append(cfg.ManifestURLs, s)
		default:
			cfg.ManifestPaths = append(cfg.ManifestPaths, s)
		}
	}
}
