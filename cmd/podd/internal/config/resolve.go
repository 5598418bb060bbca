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

// A resolver creates the Config from the checked KubeletConfiguration and the flags that have
// no v1beta1 field. It also checks these flags and collects the problems.
type resolver struct {
	flags    *Flags
	host     HostFacts
	kubelet  *kubelet.KubeletConfiguration
	merged   *mergedTree
	problems []manifest.Problem
}

// addProblem adds a problem that concerns a flag.
func (r *resolver) addProblem(severity manifest.Severity, flag, format string, args ...any) {
	r.problems = append(r.problems, origin{flag: flag}.problem(severity, "", fmt.Sprintf(format, args...)))
}

// warnf adds a warning that concerns a field.
func (r *resolver) warnf(field, format string, args ...any) {
	r.problems = append(r.problems, r.merged.origin(field).problem(manifest.Warning, field, fmt.Sprintf(format, args...)))
}

// resolve returns the Config. If r.problems then contains an error, the Config must not be used.
func (r *resolver) resolve() Config {
	var c Config
	r.resolveSources(&c)
	r.resolveNode(&c)
	r.resolveRuntime(&c)
	r.resolveMemoryQoS(&c)
	r.resolveCPUQuota(&c)
	r.resolveTracing(&c)
	r.resolveImages(&c)
	r.resolveCredentialProviders(&c)
	r.resolveEndpoints(&c)
	r.resolveCluster(&c)
	return c
}

// resolveSources sets the sources of pods and the fields that configure how they are read.
func (r *resolver) resolveSources(c *Config) {
	f, k, d := r.flags, r.kubelet, newDefaults()
	c.ManifestPaths = cleanPaths(f.PodManifestPath)
	if len(c.ManifestPaths) == 0 && k.StaticPodPath != "" {
		c.ManifestPaths = cleanPaths([]string{k.StaticPodPath})
	}
	r.resolveAPIManifestDir(c)
	c.ManifestURLs = f.ManifestURL
	for _, u := range f.ManifestURL {
		if reason := checkURL(u); reason != "" {
			r.addProblem(manifest.Error, "--manifest-url", "%s", reason)
		}
	}
	if len(c.ManifestURLs) == 0 && k.StaticPodURL != "" {
		c.ManifestURLs = []string{k.StaticPodURL}
	}
	c.URLHeader = r.resolveHeader()
	c.URLHeaderFile, c.URLCAFile = f.ManifestURLHeaderFile, f.ManifestURLCA
	c.URLCertFile, c.URLKeyFile = f.ManifestURLCert, f.ManifestURLKey
	if (c.URLCertFile == "") != (c.URLKeyFile == "") {
		r.addProblem(manifest.Error, "--manifest-url-cert", "must be set together with --manifest-url-key")
	}
	c.FileCheckFrequency = r.duration("fileCheckFrequency", k.FileCheckFrequency, d.FileCheckFrequency)
	c.HTTPCheckFrequency = r.duration("httpCheckFrequency", k.HTTPCheckFrequency, d.HTTPCheckFrequency)
	c.SyncFrequency = r.duration("syncFrequency", k.SyncFrequency, d.SyncFrequency)
	c.Strict = f.Strict
	c.RunOnce = k.RunOnce
}

// resolveAPIManifestDir sets APIManifestDir. --api-manifest-dir is an error in a cluster, because
// podd's own API is then read-only. It is also an error if the directory is one of ManifestPaths,
// because podd would run all pods in the directory twice. With --runonce the flag is ignored.
func (r *resolver) resolveAPIManifestDir(c *Config) {
	if r.flags.APIManifestDir == "" {
		return
	}
	if r.flags.Kubeconfig != "" {
		r.addProblem(manifest.Error, "--api-manifest-dir", "cannot be used together with --kubeconfig, because in a cluster podd's own API is read-only; remove one of them")
	}
	if r.kubelet.RunOnce {
		return
	}
	c.APIManifestDir = cleanPaths([]string{r.flags.APIManifestDir})[0]
	for _, path := range c.ManifestPaths {
		if absPath(path) == absPath(c.APIManifestDir) {
			r.addProblem(manifest.Error, "--api-manifest-dir", "%s is also a path of --pod-manifest-path; set a directory that only the API uses", path)
		}
	}
}

// absPath returns the absolute form of path, or path itself if the working directory is
// unknown.
func absPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// resolveHeader returns the headers of --manifest-url-header. If the flag is not set, it
// returns the headers of staticPodURLHeader.
func (r *resolver) resolveHeader() Header {
	if len(r.flags.ManifestURLHeader) == 0 {
		return Header(r.kubelet.StaticPodURLHeader)
	}
	h := Header{}
	for _, text := range r.flags.ManifestURLHeader {
		if err := parseHeader(h, text); err != nil {
			r.addProblem(manifest.Error, "--manifest-url-header", "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if reason := checkHeader(name, h[name]); reason != "" {
			r.addProblem(manifest.Error, "--manifest-url-header", "%s", reason)
		}
	}
	r.addProblem(manifest.Warning, "--manifest-url-header",
		"every user of this host can see the value in ps; use --manifest-url-header-file, or staticPodURLHeader in a file of mode 0600")
	return h
}

// cleanPaths returns paths with filepath.Clean applied to each path.
func cleanPaths(paths []string) []string {
	var cleaned []string
	for _, p := range paths {
		cleaned = append(cleaned, filepath.Clean(p))
	}
	return cleaned
}

// duration returns d, the value at path, or def if d is 0 and no flag has set it; see valueOr.
func (r *resolver) duration(path string, d, def metav1.Duration) time.Duration {
	return valueOr(r.merged, path, d, def).Duration
}

// derefOr returns *v, or *def if v is nil.
func derefOr[T any](v, def *T) T {
	if v == nil {
		v = def
	}
	return *v
}
