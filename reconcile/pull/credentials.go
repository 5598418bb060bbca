package pull

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
	"podd/manifest/order"
)

// maxConfigSize is the maximum size of the credentials file in bytes.
const maxConfigSize = 1 << 20

// A dockerConfig is the part of Docker's config.json that contains credentials.
type dockerConfig struct {
	Auths map[string]dockerAuth `json:"auths"`
}

type dockerAuth struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Email         string `json:"email"` // only part of the hash
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// A fileVersion identifies the content of a file. It is zero if the file does not exist.
type fileVersion struct {
	modifiedAt unix.Timespec
	size       int64
	inode      uint64
}

// versionOf returns the version of a file. name is the path of the file. versionOf returns the zero
// value if name is "" or the file does not exist.
func versionOf(name string) fileVersion {
	var st unix.Stat_t
	if name == "" || unix.Stat(name, &st) != nil {
		return fileVersion{}
	}
	return fileVersion{st.Mtim, st.Size, st.Ino}
}

// readConfig reads a file with credentials. Its errors never quote the file. If the file does not
// exist, the error is fs.ErrNotExist.
func readConfig(file CredentialFile) (dockerConfig, error) {
	var config dockerConfig
	f, err := os.OpenFile(file.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return config, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return config, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	if err != nil {
		return config, err
	}
	if len(data) > maxConfigSize {
		return config, errors.New("the file is larger than 1 MiB")
	}
	if file.IsLegacy {
		if json.Unmarshal(data, &config.Auths) != nil {
			return config, errors.New("the file is not a valid Docker .dockercfg")
		}
		return config, nil
	}
	if json.Unmarshal(data, &config) != nil {
		return config, errors.New("the file is not a valid Docker config.json")
	}
	return config, nil
}

// A credential is an entry of a Docker config.json that applies to an image.
type credential struct {
	key  string // in the form that normalizeKey returns
	hash string // see credentialHash
	login
}

// A login contains credentials with their origin.
type login struct {
	auth *cri.AuthConfig
	// secret identifies the Secret of the pod that contains auth, and account the service account of the
	// pod for which a credential provider has returned auth. If both are nil, all pods of the node may
	// use auth.
	secret  *kubelet.ImagePullSecret
	account *kubelet.ImagePullServiceAccount
}

// nodeLogins returns logins with credentials that all pods of the node may use.
func nodeLogins(auths []*cri.AuthConfig) (logins []login) {
	for _, a := range auths {
		logins = append(logins, login{auth: a})
	}
	return logins
}

// entriesFor returns the entries that apply to image, sorted by key.
func (c dockerConfig) entriesFor(image string) (entries []credential) {
	host, repository := splitImageName(image)
	for _, rawKey := range slices.Sorted(maps.Keys(c.Auths)) {
		if key := normalizeKey(rawKey); covers(key, host, repository) {
			auth := c.Auths[rawKey].toCRI()
			entries = append(entries, credential{key, credentialHash(auth, c.Auths[rawKey].Email), login{auth: auth}})
		}
	}
	return entries
}

// sortSpecificFirst sorts the entries by key in reverse alphabetical order, as the kubelet does,
// and returns their credentials. So a path comes before its prefixes, and * comes after every host.
// The order of entries with equal keys does not change.
func sortSpecificFirst(entries []credential) (logins []login) {
	order.Stable(entries, func(a, b credential) int { return strings.Compare(b.key, a.key) })
	for _, c := range entries {
		logins = append(logins, c.login)
	}
	return logins
}

// toCRI converts the credentials to the type of CRI. It omits the address of the server, because
// containerd would compare the host in this address with the host to which it connects. The two
// hosts differ for Docker Hub and for mirrors.
func (a dockerAuth) toCRI() *cri.AuthConfig {
	out := &cri.AuthConfig{
		Username: a.Username, Password: a.Password,
		IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(a.Auth, "="))
	if user, password, ok := strings.Cut(string(text), ":"); ok && err == nil {
		out.Username, out.Password = user, strings.TrimRight(password, "\x00")
	}
	// If there is a token, the user name is only a placeholder. It is removed, because containerd
	// would use it instead of the token.
	if out.IdentityToken != "" {
		out.Username, out.Password = "", ""
	}
	return out
}

// normalizeKey returns a key of auths ("registry.example/team", "*.example",
// "https://index.docker.io/v1/") without the scheme and the API version.
func normalizeKey(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, api := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, api)
	}
	host, path, hasPath := strings.Cut(key, "/")
	host = strings.ToLower(host)
	if host == "docker.io" || host == "registry-1.docker.io" {
		host = "index.docker.io"
	}
	if hasPath {
		return host + "/" + path
	}
	return host
}

// covers reports whether an entry with a normalized key applies to a repository.
func covers(key, host, repository string) bool {
	keyHost, keyPath, _ := strings.Cut(key, "/")
	if !coversHost(keyHost, strings.ToLower(host)) {
		return false
	}
	return keyPath == "" || repository == keyPath || strings.HasPrefix(repository, keyPath+"/")
}

// coversHost reports whether host matches pattern. As in a kubelet, each label is matched
// separately, so that credentials for *.example are not sent to a.b.example.
func coversHost(pattern, host string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == host
	}
	patterns, labels := strings.Split(pattern, "."), strings.Split(host, ".")
	if len(patterns) != len(labels) {
		return false
	}
	for i := range labels {
		if ok, err := path.Match(patterns[i], labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// splitImageName returns the registry and the repository of an image name, with the defaults
// of containerd and Docker. The registry of Docker Hub is index.docker.io.
func splitImageName(image string) (host, repository string) {
	name, _, _ := strings.Cut(image, "@")
	host, repository = manifest.SplitImageName(name)
	if host == manifest.DockerHub {
		host = "index.docker.io"
	}
	if i := strings.LastIndexByte(repository, ':'); i >= 0 {
		repository = repository[:i]
	}
	return host, repository
}

// fullRepository returns the name of an image with its registry, but without tag and digest.
// Requests to credential providers contain the name in this form.
func fullRepository(image string) string {
	host, repository := splitImageName(image)
	if host == "index.docker.io" {
		host = "docker.io"
	}
	return host + "/" + repository
}
