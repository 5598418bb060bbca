package sources

import (
	"context"
	"errors"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
)

// Read creates the sources without a cache and reads them with Wait. suffix is the field
// Suffix of decode.Options.
func Read(ctx context.Context, cfg *config.Config, suffix string) (*manifest.Set, error) {
	all, err := New(cfg, source.Options{Suffix: suffix})
	if err != nil {
		return nil, err
	}
	return Wait(ctx, all)
}

// Wait runs the sources and returns the first Set in which every source is complete. If ctx
// is done before that, it returns the last Set, or an error if there is none.
func Wait(ctx context.Context, all []source.Source) (*manifest.Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sets := source.Watch(ctx, all...)
	var last *manifest.Set
	for set := range sets {
		last = set
		if allComplete(set, all) {
			cancel()
			for range sets {
			}
			return set, nil
		}
	}
	if last == nil {
		return nil, errors.New("reading the sources: no source responded in time")
	}
	return last, nil
}

// allComplete reports whether a Set contains a complete listing of every source.
func allComplete(set *manifest.Set, all []source.Source) bool {
	for _, s := range all {
		if !set.Complete[s.Name()] {
			return false
		}
	}
	return true
}
