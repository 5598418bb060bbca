package provider

import (
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// CheckPattern returns an error if pattern is not a valid element of matchImages.
func CheckPattern(pattern string) error {
	_, err := url.Parse("https://" + pattern)
	return err
}

// matches reports whether pattern matches repository by the rules of Kubernetes. Both hosts
// must have the same number of labels, and the labels of pattern may be globs. The ports must
// be equal. The path of pattern must be a prefix of the path of repository; it may end within
// a path element.
func matches(pattern, repository string) bool {
	p, err := url.Parse("https://" + pattern)
	if err != nil {
		return false
	}
	r, err := url.Parse("https://" + repository)
	if err != nil {
		return false
	}
	globs, port := hostLabels(p)
	names, otherPort := hostLabels(r)
	if port != otherPort || len(globs) != len(names) || !strings.HasPrefix(r.Path, p.Path) {
		return false
	}
	for i := range globs {
		if ok, err := path.Match(globs[i], names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// hostLabels returns the labels of a URL's host, and its port. port is "" if the URL has none.
func hostLabels(u *url.URL) (names []string, port string) {
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		host, port = u.Host, ""
	}
	return strings.Split(host, "."), port
}

// A keyring contains credentials by the keys that normalizeKey returns. Credentials with the same
// key are in the order in which they were added.
type keyring map[string][]Credential

// add adds the credentials of a response. account is the service account to which they belong, or nil.
// Invalid keys are ignored.
func (k keyring) add(response credentials, account *kubelet.ImagePullServiceAccount) {
	for _, rawKey := range slices.Sorted(maps.Keys(response)) {
		if key := normalizeKey(rawKey); key != "" {
			auth := response[rawKey]
			k[key] = append(k[key], Credential{&cri.AuthConfig{Username: auth.Username, Password: auth.Password}, account})
		}
	}
}

// normalizeKey returns the host and path of a key, without a scheme and the version of the
// registry API. It returns "" if the key is invalid.
func normalizeKey(key string) string {
	if !strings.HasPrefix(key, "https://") && !strings.HasPrefix(key, "http://") {
		key = "https://" + key
	}
	u, err := url.Parse(key)
	if err != nil {
		return ""
	}
	urlPath := u.Path
	if strings.HasPrefix(urlPath, "/v1/") || strings.HasPrefix(urlPath, "/v2/") {
		urlPath = urlPath[len("/v1"):]
	}
	if urlPath == "/" {
		urlPath = ""
	}
	return u.Host + urlPath
}

// dockerHubKey is the key for images of Docker Hub if no key matches their names.
const dockerHubKey = "index.docker.io"

// credentialsForRepository returns the credentials that apply to a repository, those with the most
// specific key first.
func (k keyring) credentialsForRepository(repository string) []Credential {
	var keys []string
	for key := range k {
		if matches(key, repository) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 && strings.HasPrefix(repository, "docker.io/") {
		return k[dockerHubKey]
	}
	// In alphabetical order, a key comes after its prefixes, and after a key with a glob,
	// because "*" sorts before every letter. So the most specific key is the last.
	slices.Sort(keys)
	slices.Reverse(keys)
	var out []Credential
	for _, key := range keys {
		out = append(out, k[key]...)
	}
	return out
}
