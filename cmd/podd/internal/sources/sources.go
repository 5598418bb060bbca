// Package sources creates the configured sources of pods. It can also read all of them once.
package sources

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/manifest/source"
)

// New returns the configured sources. A path or URL that is configured several times has one
// source. The caller sets the cache directory, the suffix and the logger of o. New sets all
// other options from cfg.
func New(cfg *config.Config, o source.Options) ([]source.Source, error) {
	o.NodeName, o.NodeLabels, o.Strict = cfg.NodeName, host.NodeLabels(&cfg.Node), cfg.Strict
	var sources []source.Source
	o.CheckFrequency, o.ReadsAnyName = cfg.FileCheckFrequency, cfg.ActsAsKubelet
	for _, path := range removeDuplicates(cfg.ManifestPaths) {
		sources = append(sources, source.NewDir(path, o))
	}
	if cfg.APIManifestDir != "" {
		sources = append(sources, NewAPIDir(&cfg.Sources, o))
	}
	o.CheckFrequency = cfg.HTTPCheckFrequency
	for _, raw := range removeDuplicates(cfg.ManifestURLs) {
		u, err := newURLSource(raw, &cfg.Sources, o, sources)
		if err != nil {
			return nil, err
		}
		sources = append(sources, u)
	}
	return sources, nil
}

// NewAPIDir returns the source of the directory to which podd's own Kubernetes API writes manifests.
// Unknown fields in this directory cause no errors, because that API has validated the manifests.
func NewAPIDir(cfg *config.Sources, o source.Options) *source.Dir {
	o.IsWrittenByAPI, o.Strict, o.ReadsAnyName = true, false, false
	return source.NewDir(cfg.APIManifestDir, o)
}

// CheckAPIDir returns an error if the directory of the Kubernetes API is also a manifest directory,
// for example through a symlink or a bind mount. In this case each pod in the directory would run
// twice.
func CheckAPIDir(cfg *config.Sources) error {
	apiDir, err := os.Stat(cfg.APIManifestDir)
	if err != nil {
		return nil // the directory does not exist yet
	}
	for _, path := range cfg.ManifestPaths {
		if dirInfo, err := os.Stat(path); err == nil && os.SameFile(apiDir, dirInfo) {
			return fmt.Errorf("--api-manifest-dir: %s is the same directory as %s of --pod-manifest-path; set a directory that only the API uses", cfg.APIManifestDir, path)
		}
	}
	return nil
}

// APISourceName returns the name of the source that NewAPIDir returns, or "" if the Kubernetes
// API is read-only.
func APISourceName(cfg *config.Sources) string {
	if cfg.APIManifestDir == "" {
		return ""
	}
	return NewAPIDir(cfg, source.Options{}).Name()
}

// newURLSource returns the source of a URL. The name of the source does not contain the parts of
// the URL that may be secret. If an earlier source has the same name, newURLSource adds a number to
// the name.
func newURLSource(raw string, cfg *config.Sources, o source.Options, earlier []source.Source) (*source.URL, error) {
	options := source.URLOptions{
		Options: o, Header: http.Header(cfg.URLHeader), HeaderFile: cfg.URLHeaderFile,
		CAFile: cfg.URLCAFile, CertFile: cfg.URLCertFile, KeyFile: cfg.URLKeyFile,
	}
	for n := 2; ; n++ {
		u, err := source.NewURL(raw, options)
		if err != nil {
			return nil, fmt.Errorf("creating the sources: %w", err)
		}
		hasSameName := func(s source.Source) bool { return s.Name() == u.Name() }
		if !slices.ContainsFunc(earlier, hasSameName) {
			return u, nil
		}
		options.Label = strconv.Itoa(n)
	}
}

// removeDuplicates returns the elements without duplicates, in the order of their first occurrence.
func removeDuplicates(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Names returns the names of sources.
func Names(sources []source.Source) []string {
	var names []string
	for _, s := range sources {
		names = append(names, s.Name())
	}
	return names
}

// KindsByName returns the kind of each source, by the name of the source.
func KindsByName(sources []source.Source) map[string]string {
	kinds := map[string]string{}
	for _, s := range sources {
		kinds[s.Name()] = s.Kind()
	}
	return kinds
}
