package sources

import (
	"context"
	"errors"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
)

// Read creates the configured sources without a cache and reads them with ReadComplete. suffix
// is the field Suffix of decode.Options.
func Read(ctx context.Context, cfg *config.Config, suffix string) (*manifest.Set, error) {
	all, err := New(cfg, source.Options{NameSuffix: suffix})
	if err != nil {
		return nil, err
	}
	return ReadComplete(ctx, all)
}

// ReadComplete runs the sources until all of them have been read completely, and returns the
// resulting Set. If ctx is done first, it returns the last Set. If there is no Set, it returns
// an error.
func ReadComplete(ctx context.Context, all []source.Source) (*manifest.Set, error) {
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

// allComplete reports whether the set contains a complete listing of each source.
func allComplete(set *manifest.Set, all []source.Source) bool {
	for _, s := range all {
		if !set.CompleteSources[s.Name()] {
			return false
		}
	}
	return true
}
