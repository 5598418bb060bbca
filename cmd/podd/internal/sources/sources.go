// Package sources creates the sources of pods that are configured, and reads them once.
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

// New returns the configured sources without duplicates. o contains the cache
// directory and the logger.
func New(cfg *config.Config, o source.Options) ([]source.Source, error) {
	o.Node, o.Labels, o.RestartRules, o.Strict = cfg.NodeName, host.Labels(cfg), cfg.RestartRules, cfg.Strict
	var all []source.Source
	o.CheckFrequency = cfg.FileCheckFrequency
	for _, path := range unique(cfg.ManifestPaths) {
		all = append(all, source.NewDir(path, o))
	}
	if cfg.APIManifestDir != "" {
		all = append(all, API(cfg, o))
	}
	o.CheckFrequency = cfg.HTTPCheckFrequency
	for _, raw := range unique(cfg.ManifestURLs) {
		u, err := newURL(raw, cfg, o, all)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// API returns the directory that the API writes. It is not read strictly, because
// the API has checked its content.
func API(cfg *config.Config, o source.Options) *source.Dir {
	o.Written, o.Strict = true, false
	return source.NewDir(cfg.APIManifestDir, o)
}

// CheckAPIDir returns an error if the API's directory is also a manifest directory, by a
// symlink or bind mount for example, because every pod in it would run twice.
func CheckAPIDir(cfg *config.Config) error {
	mine, err := os.Stat(cfg.APIManifestDir)
	if err != nil {
		return nil // it does not exist yet
	}
	for _, path := range cfg.ManifestPaths {
		if other, err := os.Stat(path); err == nil && os.SameFile(mine, other) {
			return fmt.Errorf("--api-manifest-dir: %s is %s of --pod-manifest-path by another name; give the API a directory of its own", cfg.APIManifestDir, path)
		}
	}
	return nil
}

// APIName returns the name of that source, or "" if there is none.
func APIName(cfg *config.Config) string {
	if cfg.APIManifestDir == "" {
		return ""
	}
	return API(cfg, source.Options{}).Name()
}

// newURL returns a source. If only a part of the URL that is not shown differs from an
// earlier one, it gets a number in its name.
func newURL(raw string, cfg *config.Config, o source.Options, earlier []source.Source) (*source.URL, error) {
	options := source.URLOptions{
		Options: o, Header: http.Header(cfg.URLHeader), HeaderFile: cfg.URLHeaderFile,
		CAFile: cfg.URLCAFile, CertFile: cfg.URLCertFile, KeyFile: cfg.URLKeyFile,
	}
	for n := 2; ; n++ {
		u, err := source.NewURL(raw, options)
		if err != nil {
			return nil, fmt.Errorf("setting up the sources: %w", err)
		}
		taken := func(s source.Source) bool { return s.Name() == u.Name() }
		if !slices.ContainsFunc(earlier, taken) {
			return u, nil
		}
		options.Label = strconv.Itoa(n)
	}
}

// unique returns all without duplicates.
func unique(all []string) []string {
	var out []string
	for _, s := range all {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Names returns the names of sources.
func Names(all []source.Source) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name())
	}
	return names
}

// Kinds returns the kinds of sources by their names.
func Kinds(all []source.Source) map[string]string {
	kinds := map[string]string{}
	for _, s := range all {
		kinds[s.Name()] = s.Kind()
	}
	return kinds
}
