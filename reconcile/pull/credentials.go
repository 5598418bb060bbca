package pull

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
		return config.matching(image), nil
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

// matching returns the entries whose key covers image, longest key first.
func (c dockerConfig) matching(image string) []*cri.AuthConfig {
	host, repository := splitImage(image)
	var keys []string
	for key := range c.Auths {
		if covers(key, host, repository) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var out []*cri.AuthConfig
	for _, key := range keys {
		out = append(out, c.Auths[key].cri())
	}
	return out
}

// cri leaves out the server's address: containerd would compare it, read as a
// URL, with the host it asks, and Docker Hub's or a mirror's is another one.
func (a dockerAuth) cri() *cri.AuthConfig {
	out := &cri.AuthConfig{
		Username: a.Username, Password: a.Password,
		IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(a.Auth, "="))
	if user, password, ok := strings.Cut(string(plain), ":"); ok && err == nil {
		out.Username, out.Password = user, strings.TrimRight(password, "\x00")
	}
	// Beside a token the user is a placeholder, which containerd would prefer.
	if out.IdentityToken != "" {
		out.Username, out.Password = "", ""
	}
	return out
}

// covers tells whether a key of auths ("registry.example/team", "*.example",
// "https://index.docker.io/v1/") is for a repository.
func covers(key, host, repository string) bool {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, api := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, api)
	}
	keyHost, keyPath, _ := strings.Cut(key, "/")
	keyHost = strings.ToLower(keyHost)
	if keyHost == "docker.io" || keyHost == "registry-1.docker.io" {
		keyHost = "index.docker.io"
	}
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
