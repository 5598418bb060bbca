package pull

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// configLimit bounds the credentials file.
const configLimit = 1 << 20

// dockerConfig is the part of Docker's config.json that holds credentials.
type dockerConfig struct {
	Auths map[string]dockerAuth `json:"auths"`
}

type dockerAuth struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// File returns the credentials in a Docker config.json for images, read anew
// for each: the most specific entry first. A missing file has none. Errors
// never quote the file.
func File(name string) func(image string) ([]*cri.AuthConfig, error) {
	return func(image string) ([]*cri.AuthConfig, error) {
		config, err := readConfig(name)
		if err != nil {
			return nil, fmt.Errorf("reading registry credentials %s: %w", name, err)
		}
		return specificFirst(config.matching(image)), nil
	}
}

// stamp tells one content of a file from another; zero when there is none.
type stamp struct {
	modified unix.Timespec
	size     int64
	inode    uint64
}

func stampOf(name string) stamp {
	var st unix.Stat_t
	if name == "" || unix.Stat(name, &st) != nil {
		return stamp{}
	}
	return stamp{st.Mtim, st.Size, st.Ino}
}

func readConfig(name string) (dockerConfig, error) {
	var config dockerConfig
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return config, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return config, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, configLimit+1))
	if err != nil {
		return config, err
	}
	if len(data) > configLimit {
		return config, errors.New("it is larger than 1 MiB")
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, errors.New("it is not a Docker config.json")
	}
	return config, nil
}

// credential is an entry that covers an image.
type credential struct {
	key  string // plain
	auth *cri.AuthConfig
}

// matching are the entries whose key covers image.
func (c dockerConfig) matching(image string) (all []credential) {
	host, repository := splitImage(image)
	for _, written := range slices.Sorted(maps.Keys(c.Auths)) {
		if key := plain(written); covers(key, host, repository) {
			all = append(all, credential{key, c.Auths[written].cri()})
		}
	}
	return all
}

// specificFirst orders as the kubelet does, by key from the end of the alphabet:
// a path comes before what it begins with, and * after every host. Equal keys stay
// as they are.
func specificFirst(all []credential) (auths []*cri.AuthConfig) {
	slices.SortStableFunc(all, func(a, b credential) int { return strings.Compare(b.key, a.key) })
	for _, c := range all {
		auths = append(auths, c.auth)
	}
	return auths
}

// cri leaves out the server's address: containerd would compare it, read as a
// URL, with the host it asks, and Docker Hub's or a mirror's is another one.
func (a dockerAuth) cri() *cri.AuthConfig {
	out := &cri.AuthConfig{
		Username: a.Username, Password: a.Password,
		IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(a.Auth, "="))
	if user, password, ok := strings.Cut(string(text), ":"); ok && err == nil {
		out.Username, out.Password = user, strings.TrimRight(password, "\x00")
	}
	// Beside a token the user is a placeholder, which containerd would prefer.
	if out.IdentityToken != "" {
		out.Username, out.Password = "", ""
	}
	return out
}

// plain is a key of auths ("registry.example/team", "*.example",
// "https://index.docker.io/v1/") without scheme and API.
func plain(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, api := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, api)
	}
	host, path, below := strings.Cut(key, "/")
	host = strings.ToLower(host)
	if host == "docker.io" || host == "registry-1.docker.io" {
		host = "index.docker.io"
	}
	if below {
		return host + "/" + path
	}
	return host
}

// covers tells whether a plain key is for a repository.
func covers(key, host, repository string) bool {
	keyHost, keyPath, _ := strings.Cut(key, "/")
	if !coversHost(keyHost, strings.ToLower(host)) {
		return false
	}
	return keyPath == "" || repository == keyPath || strings.HasPrefix(repository, keyPath+"/")
}

// coversHost matches label by label, as the kubelet does: what is meant for
// *.example is not sent to a.b.example.
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

// splitImage returns the registry and the repository of an image name, as
// containerd and Docker read it.
func splitImage(image string) (host, repository string) {
	name, _, _ := strings.Cut(image, "@")
	host, repository, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, repository = "docker.io", name
	}
	if host == "docker.io" {
		host = "index.docker.io"
	}
	if host == "index.docker.io" && !strings.Contains(repository, "/") {
		repository = "library/" + repository
	}
	if i := strings.LastIndexByte(repository, ':'); i >= 0 {
		repository = repository[:i]
	}
	return host, repository
}

// repositoryOf is the name of an image without tag and digest, its registry
// first, as credential providers are asked for it.
func repositoryOf(image string) string {
	host, repository := splitImage(image)
	if host == "index.docker.io" {
		host = "docker.io"
	}
	return host + "/" + repository
}
