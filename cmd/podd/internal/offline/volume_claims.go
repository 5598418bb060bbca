package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon/view"
	"podd/server"
)

// errNoSources is returned if it is unknown which claims are desired.
var errNoSources = errors.New("no podd runs here, and without a source of pods nobody knows which claims are wanted; give --pod-manifest-path or --manifest-url as podd run has them")

// desiredClaims returns the claims of the running podd, which may be nil, and those of
// the sources in cfg.
func desiredClaims(ctx context.Context, running *server.View, cfg *config.Config) ([]server.ClaimView, error) {
	var all []server.ClaimView
	if running != nil {
		for _, source := range running.Unread {
			if source != server.ClusterSource { // its claims have no data on this node
				return nil, unreadError(source)
			}
		}
		all = running.Claims
	}
	if len(cfg.ManifestPaths)+len(cfg.ManifestURLs) == 0 && cfg.APIManifestDir == "" {
		if running == nil {
			return nil, errNoSources
		}
		return all, nil
	}
	sources, set, err := planSources(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if !set.Complete[s.Name()] {
			return nil, unreadError(s.Name())
		}
	}
	return slices.Concat(all, view.Claims(set)), nil
}

func unreadError(source string) error {
	return fmt.Errorf("looking which claims are wanted: %s was not seen in time; try again", source)
}
