// Package source watches the places that say what should run: directories and
// files (Dir) and URLs (URL). Watch merges them into one stream of Sets.
//
//	Dir ──┐ Batch                    latest wins
//	Dir ──┼───────▶ merger ── Merge ──────────▶ *manifest.Set
//	URL ──┘
//
// Every source is one goroutine that owns what it has seen; it emits its whole
// content whenever that changes, so a lost wake-up costs time and nothing else.
//
// What runs of a file or URL is its last good content. Content that is broken,
// unreadable, half written or gone with its directory changes nothing but the
// Problems, in this process and, through the cache under <root>/sources, in
// every later one. Only a listing that was really read, without a file, or a
// good content without a pod, takes a pod away.
package source

import (
	"context"
	"log/slog"
	"time"

	"podd/manifest"
)

// Source is a place that says what should run. Dir and URL are sources; the
// cluster add-on brings its own.
type Source interface {
	// Name is unique among the sources of one podd and holds no secret: a path,
	// or a URL without userinfo and query. It is Batch.Source.
	Name() string
	// Kind is manifest.KindFile, KindURL or KindAPI.
	Kind() string
	// Run emits the whole content of the source, at first and after every
	// change, until ctx is done; then it returns nil, when everything that it
	// started has ended. After an error Watch runs it again. emit is called by
	// one goroutine at a time, keeps the caller no longer than a merge takes,
	// and is not called after Run returned. Run is called once at a time.
	Run(ctx context.Context, emit func(manifest.Batch)) error
}

// Sizes and times that are the same for every source.
const (
	// MaxSize is how many bytes a file or a URL's answer may have.
	MaxSize = 10 << 20
	// DefaultFrequency is how often a source is looked at without a cause.
	DefaultFrequency = 20 * time.Second
)

// Options are what every source needs. Only Node is required.
type Options struct {
	// Node is the node's name, which decoding puts into pod names.
	Node string
	// Labels are manifest.Options.Labels.
	Labels map[string]string
	// Suffix is manifest.Options.Suffix.
	Suffix string
	// RestartRules is manifest.Options.RestartRules.
	RestartRules bool
	// Written is manifest.Options.Written.
	Written bool
	// Strict makes unknown and repeated fields errors.
	Strict bool
	// CheckFrequency is how often a source is looked at without a cause; zero
	// or less is DefaultFrequency.
	CheckFrequency time.Duration
	// Cache is the directory of last good contents, <root>/sources; it is made
	// when it is missing. "" keeps nothing: a restart then runs what is there.
	Cache string
	// CacheReadOnly leaves the cache as it is: another podd writes it.
	CacheReadOnly bool
	// Log gets what is said once; nil is silence.
	Log *slog.Logger
	// Decode makes pods of bytes; nil is manifest.Decode with the other options.
	// It must not return nil.
	Decode func(data []byte, path string) *manifest.File
	// Now is the wall clock; nil is time.Now.
	Now func() time.Time
}

// cache opens the cache of the source with this name.
func (o Options) cache(name string) *cache {
	if o.CacheReadOnly && o.Cache != "" {
		return viewCache(o.Cache, name)
	}
	return openCache(o.Cache, name)
}

// complete returns o with every default filled in for one source.
func (o Options) complete(kind, name string) Options {
	if o.CheckFrequency <= 0 {
		o.CheckFrequency = DefaultFrequency
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Decode == nil {
		o.Decode = func(data []byte, path string) *manifest.File {
			return manifest.Decode(data, manifest.Options{
				Kind: kind, Source: name, Path: path,
				Node: o.Node, Labels: o.Labels, Suffix: o.Suffix, RestartRules: o.RestartRules, Written: o.Written, Strict: o.Strict, Now: o.Now(),
			})
		}
	}
	return o
}
