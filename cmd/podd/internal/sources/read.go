package sources

import (
	"context"
	"errors"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
)

// Read reads the sources without the cache, see Wait. suffix is
// decode.Options.Suffix.
func Read(ctx context.Context, cfg *config.Config, suffix string) (*manifest.Set, error) {
	all, err := New(cfg, source.Options{Suffix: suffix})
	if err != nil {
		return nil, err
	}
	return Wait(ctx, all)
}

// Wait returns the first Set in which every source is complete, or the last one
// before ctx ends.
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
		return nil, errors.New("reading the sources: none was read in time")
	}
	return last, nil
}

func allComplete(set *manifest.Set, all []source.Source) bool {
	for _, s := range all {
		if !set.Complete[s.Name()] {
			return false
		}
	}
	return true
}
