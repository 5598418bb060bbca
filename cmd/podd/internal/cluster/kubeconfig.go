package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// read returns the configuration in a kubeconfig.
func read(path string) (*rest.Config, error) {
	file, err := load(path)
	if err != nil {
		return nil, err
	}
	return restConfig(file)
}

// load reads a kubeconfig. Its errors are shown to users; those of parsers may quote
// secrets and are replaced.
func load(path string) (*api.Config, error) {
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, withoutText(err)
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(file.Clusters)) {
		if err := checkURLs(file.Clusters[name]); err != nil {
			return nil, fmt.Errorf("cluster %q: %w", name, err)
		}
	}
	return file, nil
}

var lineOf = regexp.MustCompile(`\bline [0-9]+\b`)

// withoutText reduces the error of a parser to the line number.
func withoutText(err error) error {
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return err
	}
	if line := lineOf.FindString(err.Error()); line != "" {
		return errors.New("it is no kubeconfig in YAML or JSON: see its " + line)
	}
	return errors.New("it is no kubeconfig in YAML or JSON")
}

// checkURLs checks the fields that may contain a password.
func checkURLs(c *api.Cluster) error {
	if _, _, err := rest.DefaultServerURL(c.Server, "/api", v1.SchemeGroupVersion, true); err != nil && c.Server != "" {
		return errors.New("its server is no URL")
	}
	if c.ProxyURL == "" {
		return nil
	}
	if u, err := url.Parse(c.ProxyURL); err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return errors.New("its proxy-url is no URL of http, https or socks5")
	}
	return nil
}

// outdated reports whether a new connection is needed: the kubeconfig differs from seen
// and is valid, or its credential is no longer valid. If the new kubeconfig is invalid,
// it returns an error.
func (o *Options) outdated(seen fileStamp) (bool, error) {
	now := stamp(o.Kubeconfig)
	if now == seen {
		return o.needsBootstrap(), nil
	}
	if o.BootstrapKubeconfig != "" && now == (fileStamp{}) {
		return true, nil // the user requests a new bootstrap by removing it
	}
	err := o.unusable()
	return err == nil, err
}

// A fileStamp identifies a version of a file.
type fileStamp struct {
	size int64
	time time.Time
}

func stamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime()}
}

// unusable returns the error that connect would return for the current kubeconfig, or
// nil. It stores nothing.
func (o *Options) unusable() error {
	config, err := read(o.Kubeconfig)
	if err == nil {
		_, err = authorityOf(config)
	}
	if err == nil {
		_, err = loadPair(config)
	}
	if err != nil {
		return configError{fmt.Errorf("reading --kubeconfig %s, which is another than podd uses: %w", o.Kubeconfig, err)}
	}
	return nil
}
