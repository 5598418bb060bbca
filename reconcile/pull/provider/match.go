package provider

import (
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CheckPattern tells what is wrong with an element of matchImages.
func CheckPattern(pattern string) error {
	_, err := url.Parse("https://" + pattern)
	return err
}

// matches is Kubernetes' rule: as many labels in the host, each of which may be
// a glob; the same port, or none in both; and a path that is a prefix, also one
// that ends within a name.
func matches(pattern, repository string) bool {
	p, err := url.Parse("https://" + pattern)
	if err != nil {
		return false
	}
	r, err := url.Parse("https://" + repository)
	if err != nil {
		return false
	}
	globs, port := labels(p)
	names, other := labels(r)
	if port != other || len(globs) != len(names) || !strings.HasPrefix(r.Path, p.Path) {
		return false
	}
	for i := range globs {
		if ok, err := path.Match(globs[i], names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

func labels(u *url.URL) (names []string, port string) {
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		host, port = u.Host, ""
	}
	return strings.Split(host, "."), port
}

// keyring has credentials by the key they stand under, without its scheme; those
// of one key in the order in which they came.
type keyring map[string][]*cri.AuthConfig

func (k keyring) add(all credentials) {
	for _, written := range slices.Sorted(maps.Keys(all)) {
		if key := plainKey(written); key != "" {
			auth := all[written]
			k[key] = append(k[key], &cri.AuthConfig{Username: auth.Username, Password: auth.Password})
		}
	}
}

// plainKey leaves out what a key may have beside host and path: a scheme, and
// the version of a registry's API.
func plainKey(key string) string {
	if !strings.HasPrefix(key, "https://") && !strings.HasPrefix(key, "http://") {
		key = "https://" + key
	}
	u, err := url.Parse(key)
	if err != nil {
		return ""
	}
	at := u.Path
	if strings.HasPrefix(at, "/v1/") || strings.HasPrefix(at, "/v2/") {
		at = at[len("/v1"):]
	}
	if at == "/" {
		at = ""
	}
	return u.Host + at
}

// hub is the name under which credentials of Docker Hub stand when they stand
// under none that its images have.
const hub = "index.docker.io"

func (k keyring) matching(repository string) []*cri.AuthConfig {
	var keys []string
	for key := range k {
		if matches(key, repository) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 && strings.HasPrefix(repository, "docker.io/") {
		return k[hub]
	}
	// A longer key is behind its own beginning, and what has no glob behind one
	// that has: "*" sorts before every letter.
	slices.Sort(keys)
	slices.Reverse(keys)
	var out []*cri.AuthConfig
	for _, key := range keys {
		out = append(out, k[key]...)
	}
	return out
}
