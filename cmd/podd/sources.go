package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"

	"podd/cmd/podd/internal/config"
	"podd/manifest/source"
)

// openSources are all there are, the cluster too.
func (d *podd) openSources() ([]source.Source, error) {
	cache := cacheDir(d.cfg)
	all, err := sources(d.cfg, source.Options{Log: d.log, Cache: cache})
	if err != nil {
		return nil, err
	}
	if d.cluster != nil {
		all = append(all, d.cluster.Source())
	}
	if err := source.Prune(cache, all...); err != nil {
		d.log.Warn("content of sources that are no longer configured stays", "err", err)
	}
	return all, nil
}

// sources are the configured places, each once. o has where last good contents
// are kept, and who is told what.
func sources(cfg *config.Config, o source.Options) ([]source.Source, error) {
	o.Node, o.Labels, o.RestartRules, o.Strict = cfg.NodeName, nodeLabels(cfg), cfg.RestartRules, cfg.Strict
	var all []source.Source
	o.CheckFrequency = cfg.FileCheckFrequency
	for _, path := range unique(cfg.ManifestPaths) {
		all = append(all, source.NewDir(path, o))
	}
	if cfg.APIManifestDir != "" {
		all = append(all, writtenSource(cfg, o))
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

// writtenSource is the directory that the API writes. What is in it was checked
// before it was written.
func writtenSource(cfg *config.Config, o source.Options) *source.Dir {
	o.Written, o.Strict = true, false
	return source.NewDir(cfg.APIManifestDir, o)
}

// readOnce refuses a directory that is the API's by another name, a symlink or bind
// mount say: every pod in it would run twice.
func readOnce(cfg *config.Config) error {
	mine, err := os.Stat(cfg.APIManifestDir)
	if err != nil {
		return nil // it will be made
	}
	for _, path := range cfg.ManifestPaths {
		if other, err := os.Stat(path); err == nil && os.SameFile(mine, other) {
			return fmt.Errorf("--api-manifest-dir: %s is %s of --pod-manifest-path by another name; give the API a directory of its own", cfg.APIManifestDir, path)
		}
	}
	return nil
}

// writtenName is the name of that source; "" for none.
func writtenName(cfg *config.Config) string {
	if cfg.APIManifestDir == "" {
		return ""
	}
	return writtenSource(cfg, source.Options{}).Name()
}

// newURL labels a URL that differs from an earlier one only in what its name
// does not show.
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

// unique keeps the first of equal texts.
func unique(all []string) []string {
	var out []string
	for _, s := range all {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func sourceNames(all []source.Source) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name())
	}
	return names
}

func sourceKinds(all []source.Source) map[string]string {
	kinds := map[string]string{}
	for _, s := range all {
		kinds[s.Name()] = s.Kind()
	}
	return kinds
}
