package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"podd/cmd/podd/internal/cluster"
	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/server"
)

// claimViews are the claims of a set, but for those of a cluster, which keeps their
// data itself.
func claimViews(set *manifest.Set) []server.ClaimView {
	var all []server.ClaimView
	for _, o := range set.Objects {
		if o.Cluster != nil {
			continue
		}
		for key, c := range o.Claims {
			at := o.Origins[manifest.ObjectRef{Kind: "PersistentVolumeClaim", NamespacedName: key}]
			all = append(all, server.ClaimView{
				Claim: server.Key(key), Requested: c.Spec.Resources.Requests.Storage().String(), Path: at.Path, Line: at.Line,
			})
		}
	}
	slices.SortFunc(all, func(a, b server.ClaimView) int {
		return cmp.Or(cmp.Compare(a.Claim.String(), b.Claim.String()), cmp.Compare(a.Path, b.Path))
	})
	return all
}

// errUnknownWishes is that nobody says which claims are wanted.
var errUnknownWishes = errors.New("no podd runs here, and without a source of pods nobody knows which claims are wanted; give --pod-manifest-path or --manifest-url as podd run has them")

// wantedClaims are those of the podd that runs, nil for none, and those of the
// sources that were given.
func wantedClaims(ctx context.Context, running *server.View, cfg *config.Config) ([]server.ClaimView, error) {
	var all []server.ClaimView
	if running != nil {
		for _, source := range running.Unread {
			if source != cluster.SourceName { // whose claims have no data here
				return nil, unseen(source)
			}
		}
		all = running.Claims
	}
	if len(cfg.ManifestPaths)+len(cfg.ManifestURLs) == 0 && cfg.APIManifestDir == "" {
		if running == nil {
			return nil, errUnknownWishes
		}
		return all, nil
	}
	sources, set, err := planSources(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if !set.Complete[s.Name()] {
			return nil, unseen(s.Name())
		}
	}
	return slices.Concat(all, claimViews(set)), nil
}

func unseen(source string) error {
	return fmt.Errorf("looking which claims are wanted: %s was not seen in time; try again", source)
}
