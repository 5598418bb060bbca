// Package source watches the sources of desired pods: directories and files (Dir) and URLs (URL).
// Watch merges them into one stream of Sets.
//
//	Dir ──┐ Batch                    newest only
//	Dir ──┼───────▶ merger ── merge ──────────▶ *manifest.Set
//	URL ──┘
//
// Each source is one goroutine that owns its state. It emits its whole content after each change,
// so a lost event delays a change but never loses it.
//
// podd runs the last valid content of a file or URL. If the content becomes invalid, unreadable or
// incomplete, or if its directory disappears, only the Problems change. The same applies after a
// restart, because the cache in <root>/sources contains the last valid content.
//
// A pod is removed only in two cases: valid content of its file or URL does not contain the pod, or
// a complete listing does not contain its file. Such a listing removes the pod in three cases:
//
//   - The listed directory is the one that contained the file (identity). An empty mount point
//     whose filesystem is not mounted is another directory.
//   - The listed directory has replaced that directory, contains manifests, and has not changed for
//     10 s (recognize).
//   - A user accepts the directory (podd accept empty).
//
// If the cache cannot be read, podd cannot determine whether an empty directory contained manifests
// before. In this case podd keeps the pods.
package source

import (
	"context"
	"log/slog"
	"time"

	"podd/manifest"
	"podd/manifest/decode"
)

// A Source provides desired pods. Dir and URL implement Source. The source of the pods of a cluster
// is in package cmd/podd/internal/cluster/boundpods.
type Source interface {
	// Name returns the value of Batch.Source: a path, or a URL without userinfo and query. It is
	// unique among the sources of one podd and contains no secret.
	Name() string
	// Kind returns manifest.KindFile, KindURL or KindAPI.
	Kind() string
	// Run emits the whole content of the source when it starts and after every change, until ctx
	// is done. Then it stops all goroutines that it started and returns nil. After an error
	// Watch calls Run again. Run calls emit from one goroutine at a time, and not after Run has
	// returned. emit blocks no longer than a merge takes. Run must not be called concurrently.
	Run(ctx context.Context, emit func(manifest.Batch)) error
}

// Limits and defaults for every source.
const (
	// MaxSize is the maximum size in bytes of a file or of a response.
	MaxSize = 10 << 20
	// defaultFrequency is the default of Options.CheckFrequency.
	defaultFrequency = 20 * time.Second
)

// Options configure a source. Only NodeName is required.
type Options struct {
	// NodeName is the node's name, which decoding appends to pod names.
	NodeName string
	// NodeLabels has the meaning of decode.Options.NodeLabels.
	NodeLabels map[string]string
	// NameSuffix has the meaning of decode.Options.NameSuffix.
	NameSuffix string
	// IsWrittenByAPI has the meaning of decode.Options.IsWrittenByAPI.
	IsWrittenByAPI bool
	// Strict makes unknown and duplicate fields errors.
	Strict bool
	// ReadsAnyName makes a directory read files with names of any form, as the kubelet does. Hidden
	// files are not read. Backup files are not read either, although the kubelet reads them, because
	// an old version of a pod would run instead of the current one. If it is not set, only files
	// with names that end in .yaml, .yml, .json or .manifest are read.
	ReadsAnyName bool
	// CheckFrequency is the maximum interval between two checks if no event arrives. If it is
	// zero or negative, 20 s is used.
	CheckFrequency time.Duration
	// CacheDir is the directory for the last valid contents, <root>/sources. It is created if
	// necessary. "" disables the cache: after a restart only the current content is used.
	CacheDir string
	// IsCacheReadOnly prevents writes to the cache. It must be set if another podd process writes
	// the cache.
	IsCacheReadOnly bool
	// Log is the logger; nil discards all messages.
	Log *slog.Logger
	// Decode decodes a manifest; nil means decode.File with the other options. It must
	// not return nil.
	Decode func(data []byte, path string) *manifest.File
	// Now returns the wall-clock time; nil means time.Now.
	Now func() time.Time
}

// openSourceCache opens the cache of the source with this name.
func (o Options) openSourceCache(name string) *cache {
	if o.IsCacheReadOnly && o.CacheDir != "" {
		return openCacheReadOnly(o.CacheDir, name)
	}
	return openCache(o.CacheDir, name)
}

// withDefaults returns o with defaults for the fields that are not set. kind and name are those of
// the source.
func (o Options) withDefaults(kind, name string) Options {
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
				NodeName: o.NodeName, NodeLabels: o.NodeLabels, NameSuffix: o.NameSuffix, IsWrittenByAPI: o.IsWrittenByAPI, Strict: o.Strict, Now: o.Now(),
			})
		}
	}
	return o
}
