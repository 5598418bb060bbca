// Package source watches the places that define the desired pods: directories and files
// (Dir) and URLs (URL). Watch merges them into one stream of Sets.
//
//	Dir ──┐ Batch                    latest wins
//	Dir ──┼───────▶ merger ── merge ──────────▶ *manifest.Set
//	URL ──┘
//
// Each source is one goroutine that owns its state. It emits its whole content after each
// change, so a lost event delays a change but never loses it.
//
// podd runs the last valid content of a file or URL. If the content becomes invalid,
// unreadable or incomplete, or if its directory disappears, only the Problems change. This
// also holds after a restart, because the cache under <root>/sources has the last valid
// content. A pod is removed only if a complete listing lacks its file, or if valid content
// lacks the pod. A listing that lacks files removes pods only if it is the one
// that had these files (identity), and not the mount point of a filesystem that is missing,
// or if a user accepts it. A directory that replaces another one removes them if it has files
// and does not change for 10 s (recognize). If the cache cannot be read, podd does not know
// whether an empty directory had manifests, and treats it as one that had.
package source

import (
	"context"
	"log/slog"
	"time"

	"podd/manifest"
	"podd/manifest/decode"
)

// A Source defines desired pods. Dir and URL are sources; the cluster add-on has another
// one.
type Source interface {
	// Name is unique among the sources of one podd and contains no secret: a path, or a URL
	// without userinfo and query. It is Batch.Source.
	Name() string
	// Kind is manifest.KindFile, KindURL or KindAPI.
	Kind() string
	// Run emits the whole content of the source, at first and after every change, until ctx
	// is done. Then it stops everything that it started and returns nil. After an error
	// Watch calls Run again. Run calls emit from one goroutine at a time and not after it
	// has returned; emit blocks no longer than a merge takes. Run must not be called
	// concurrently.
	Run(ctx context.Context, emit func(manifest.Batch)) error
}

// Limits and defaults for every source.
const (
	// MaxSize is the maximum size in bytes of a file or of a response.
	MaxSize = 10 << 20
	// defaultFrequency is the default of Options.CheckFrequency.
	defaultFrequency = 20 * time.Second
)

// Options configure a source. Only Node is required.
type Options struct {
	// Node is the node's name, which decoding appends to pod names.
	Node string
	// Labels is decode.Options.Labels.
	Labels map[string]string
	// Suffix is decode.Options.Suffix.
	Suffix string
	// RestartRules is decode.Options.RestartRules.
	RestartRules bool
	// Written is decode.Options.Written.
	Written bool
	// Strict makes unknown and duplicate fields errors.
	Strict bool
	// CheckFrequency is the interval of checks without an event. If it is zero or negative,
	// 20 s is used.
	CheckFrequency time.Duration
	// Cache is the directory for the last valid contents, <root>/sources. It is created if
	// necessary. "" disables the cache: after a restart only the current content is used.
	Cache string
	// CacheReadOnly prevents writes to the cache, because another podd writes it.
	CacheReadOnly bool
	// Log receives messages that are logged once. nil discards them.
	Log *slog.Logger
	// Decode decodes a manifest; nil means decode.File with the other options. It must
	// not return nil.
	Decode func(data []byte, path string) *manifest.File
	// Now returns the wall-clock time; nil means time.Now.
	Now func() time.Time
}

// cache opens the cache of the source with this name.
func (o Options) cache(name string) *cache {
	if o.CacheReadOnly && o.Cache != "" {
		return viewCache(o.Cache, name)
	}
	return openCache(o.Cache, name)
}

// complete returns o with the defaults for one source.
func (o Options) complete(kind, name string) Options {
	if o.CheckFrequency <= 0 {
		o.CheckFrequency = defaultFrequency
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Decode == nil {
		o.Decode = func(data []byte, path string) *manifest.File {
			return decode.File(data, decode.Options{
				Kind: kind, Source: name, Path: path,
				Node: o.Node, Labels: o.Labels, Suffix: o.Suffix, RestartRules: o.RestartRules, Written: o.Written, Strict: o.Strict, Now: o.Now(),
			})
		}
	}
	return o
}
