package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// resolving builds the Config from a checked configuration and the flags that have no
// field, and checks those flags.
type resolving struct {
	flags    *Flags
	machine  Machine
	k        *kubelet.KubeletConfiguration
	problems []manifest.Problem
}

func (r *resolving) add(sev manifest.Severity, flag, format string, args ...any) {
	r.problems = append(r.problems, origin{flag: flag}.problem(sev, "", fmt.Sprintf(format, args...)))
}

func (r *resolving) config() Config {
	var c Config
	r.sources(&c)
	r.node(&c)
	r.runtime(&c)
	r.images(&c)
	r.credentialProviders(&c)
	r.faces(&c)
	r.cluster(&c)
	return c
}

func (r *resolving) sources(c *Config) {
	f, k, d := r.flags, r.k, defaults()
	c.ManifestPaths = clean(f.PodManifestPath)
	if len(c.ManifestPaths) == 0 && k.StaticPodPath != "" {
		c.ManifestPaths = clean([]string{k.StaticPodPath})
	}
	r.writtenDir(c)
	c.ManifestURLs = f.ManifestURL
	for _, u := range f.ManifestURL {
		if why := checkURL(u); why != "" {
			r.add(manifest.Error, "--manifest-url", "%s", why)
		}
	}
	if len(c.ManifestURLs) == 0 && k.StaticPodURL != "" {
		c.ManifestURLs = []string{k.StaticPodURL}
	}
	c.URLHeader = r.header()
	c.URLHeaderFile, c.URLCAFile = f.ManifestURLHeaderFile, f.ManifestURLCA
	c.URLCertFile, c.URLKeyFile = f.ManifestURLCert, f.ManifestURLKey
	if (c.URLCertFile == "") != (c.URLKeyFile == "") {
		r.add(manifest.Error, "--manifest-url-cert", "a certificate needs its key and a key its certificate; give --manifest-url-key too")
	}
	c.FileCheckFrequency = or(k.FileCheckFrequency, d.FileCheckFrequency)
	c.HTTPCheckFrequency = or(k.HTTPCheckFrequency, d.HTTPCheckFrequency)
	c.SyncFrequency = or(k.SyncFrequency, d.SyncFrequency)
	c.RestartRules = RestartRules(k.FeatureGates)
	c.Strict = f.Strict
	c.RunOnce = k.RunOnce
}

// writtenDir checks APIManifestDir. It is not permitted in a cluster, and must not be one
// of ManifestPaths, because all its pods would run twice.
func (r *resolving) writtenDir(c *Config) {
	if r.flags.APIManifestDir == "" {
		return
	}
	c.APIManifestDir = clean([]string{r.flags.APIManifestDir})[0]
	if r.flags.Kubeconfig != "" {
		r.add(manifest.Error, "--api-manifest-dir", "with --kubeconfig nothing is written over podd's own API, for the cluster's is where its users are known; leave one of them out")
	}
	for _, path := range c.ManifestPaths {
		if absolute(path) == absolute(c.APIManifestDir) {
			r.add(manifest.Error, "--api-manifest-dir", "%s is read for --pod-manifest-path, too; give the API a directory of its own", path)
		}
	}
}

// absolute returns a path that can be compared with others.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// header returns the headers of the flags, or else those of the file.
func (r *resolving) header() Header {
	if len(r.flags.ManifestURLHeader) == 0 {
		return Header(r.k.StaticPodURLHeader)
	}
	h := Header{}
	for _, text := range r.flags.ManifestURLHeader {
		if err := parseHeader(h, text); err != nil {
			r.add(manifest.Error, "--manifest-url-header", "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if why := checkHeader(name, h[name]); why != "" {
			r.add(manifest.Error, "--manifest-url-header", "%s", why)
		}
	}
	r.add(manifest.Warning, "--manifest-url-header",
		"every user of this machine can read its value in ps; use --manifest-url-header-file, or staticPodURLHeader in a file of mode 0600")
	return h
}

func clean(paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, filepath.Clean(p))
	}
	return out
}

// or returns d, or otherwise if d is zero: the files that kubeadm writes contain "0s" for
// defaults.
func or(d, otherwise metav1.Duration) time.Duration { return orZero(d, otherwise).Duration }

func orZero[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func orNil[T any](v, otherwise *T) T {
	if v == nil {
		v = otherwise
	}
	return *v
}
