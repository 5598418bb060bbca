package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"podd/cmd/podd/internal/cluster"
	"podd/cmd/podd/internal/config"
	"podd/server"
)

// beside is what the running podd shows whose machine a verb is about to look at,
// nil for none: with another root directory than was asked for it is another. cfg
// gets from it what was not asked for otherwise: the root directory, the name of
// the node, the runtime and its feature gates.
func beside(ctx context.Context, flags *config.Flags, cfg *config.Config, talk io.Writer) *server.View {
	p, err := Client{RunDir: cmp.Or(flags.RunDir, os.Getenv("PODD_RUN_DIR"))}.connect(ctx)
	var v *server.View
	if err == nil {
		v, err = p.state(ctx)
	}
	if err != nil {
		if none := (notRunning{}); !errors.As(err, &none) {
			fmt.Fprintf(talk, "podd: warning: %v; going on as if no podd ran\n", err)
		}
		return nil
	}
	if v.Root == "" || flags.RootDir != "" && cfg.RootDir != v.Root {
		return nil
	}
	cfg.RootDir = v.Root
	if flags.HostnameOverride == "" {
		cfg.NodeName = v.Node
	}
	if flags.ContainerRuntimeEndpoint == nil && v.Endpoint != "" {
		cfg.RuntimeEndpoint = v.Endpoint
	}
	asked := func(k config.Known) bool { return k.Name == "feature-gates" }
	if !slices.ContainsFunc(flags.Known, asked) {
		cfg.RestartRules = cfg.RestartRules || v.RestartRules
	}
	return v
}

// readAs makes the sources those of a podd that runs, unless some were given.
func readAs(running *server.View, cfg *config.Config) {
	if running == nil || len(cfg.ManifestPaths)+len(cfg.ManifestURLs) > 0 {
		return
	}
	cfg.APIManifestDir = running.Written
	for _, s := range running.Sources {
		switch {
		case s == running.Written, s == cluster.SourceName:
		case isURL(s):
			cfg.ManifestURLs = append(cfg.ManifestURLs, s)
		default:
			cfg.ManifestPaths = append(cfg.ManifestPaths, s)
		}
	}
}
