package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"podd/cmd/podd/internal/claims"
	"podd/cmd/podd/internal/config"
	"podd/server"
)

// errNoSources is the error of desiredClaims if podd is not running and no sources are configured.
var errNoSources = errors.New("the desired claims are unknown, because podd is not running and no source of pods is configured; set --pod-manifest-path or --manifest-url as for \"podd run\"")

// desiredClaims returns the claims of the running podd and the claims of the sources in cfg.
// running is nil if podd is not running.
func desiredClaims(ctx context.Context, running *server.View, cfg *config.Config) ([]server.ClaimView, error) {
	var views []server.ClaimView
	if running != nil {
		for _, source := range running.UnreadSources {
			if source != server.ClusterSource { // the claims of a cluster have no data in podd's root directory
				return nil, unreadSourceError(source)
			}
		}
		views = running.Claims
	}
	if len(cfg.ManifestPaths)+len(cfg.ManifestURLs) == 0 && cfg.APIManifestDir == "" {
		if running == nil {
			return nil, errNoSources
		}
		return views, nil
	}
	sources, set, err := readPlanSources(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if !set.CompleteSources[s.Name()] {
			return nil, unreadSourceError(s.Name())
		}
	}
	return slices.Concat(views, claims.List(set)), nil
}

// unreadSourceError returns the error for a source that has not been read yet.
func unreadSourceError(source string) error {
	return fmt.Errorf("reading the desired claims: source %s has not been read yet; try again", source)
}
