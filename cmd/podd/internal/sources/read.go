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
	sources, err := New(cfg, source.Options{NameSuffix: suffix})
	if err != nil {
		return nil, err
	}
	return ReadComplete(ctx, sources)
}

// ReadComplete runs the sources until all of them have been read completely, and returns the
// resulting Set. If ctx is done first, it returns the last Set. If there is no Set, it returns
// an error.
func ReadComplete(ctx context.Context, sources []source.Source) (*manifest.Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sets := source.Watch(ctx, sources...)
	var lastSet *manifest.Set
	for set := range sets {
		lastSet = set
		if allComplete(set, sources) {
			cancel()
			for range sets {
			}
			return set, nil
		}
	}
	if lastSet == nil {
		return nil, errors.New("reading the sources: no source responded in time")
	}
	return lastSet, nil
}

// allComplete reports whether the set contains a complete listing of each source.
func allComplete(set *manifest.Set, sources []source.Source) bool {
	for _, s := range sources {
		if !set.CompleteSources[s.Name()] {
			return false
		}
	}
	return true
}
