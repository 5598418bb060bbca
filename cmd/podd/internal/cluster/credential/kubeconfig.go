package credential

import (
	"crypto/tls"
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

	"podd/cmd/podd/internal/cluster/apiserver"
)

// NewClient reads the kubeconfig and returns a client. It sends no request. It also returns
// the client certificate that podd renews, or nil if the kubeconfig determines the credential.
func (m *Manager) NewClient() (*apiserver.Client, *Identity, error) {
	config, err := readKubeconfig(m.Kubeconfig)
	if err != nil {
		return nil, nil, KubeconfigError{fmt.Errorf("reading --kubeconfig %s: %w", m.Kubeconfig, err)}
	}
	caDigest, err := apiserver.AuthorityDigest(config)
	if err != nil {
		return nil, nil, KubeconfigError{fmt.Errorf("using --kubeconfig %s: %w", m.Kubeconfig, err)}
	}
	i, err := m.chooseIdentity(config)
	if err != nil {
		return nil, nil, KubeconfigError{fmt.Errorf("loading the client certificate of --kubeconfig %s: %w", m.Kubeconfig, err)}
	}
	var certificate func() *tls.Certificate
	if i != nil {
		certificate = i.current.Load
	}
	c, err := apiserver.New(config, &m.Client, certificate)
	if err != nil {
		return nil, nil, KubeconfigError{fmt.Errorf("using --kubeconfig %s: %w", m.Kubeconfig, err)}
	}
	c.CADigest = caDigest
	return c, i, nil
}

// readKubeconfig returns the client configuration of the current context in a kubeconfig file.
func readKubeconfig(path string) (*rest.Config, error) {
	file, err := loadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	return restConfig(file)
}

// loadKubeconfig reads and checks a kubeconfig. Its errors never quote the file, because all users
// can see the errors and the file may contain secrets.
func loadKubeconfig(path string) (*api.Config, error) {
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, redactParseError(err)
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

// lineNumber matches the line number in an error of the YAML parser.
var lineNumber = regexp.MustCompile(`\bline [0-9]+\b`)

// redactParseError returns an error that contains only the line number of err, which is an error of
// the YAML or JSON parser. It returns errors of the file system unchanged.
func redactParseError(err error) error {
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return err
	}
	if line := lineNumber.FindString(err.Error()); line != "" {
		return errors.New("not a valid kubeconfig in YAML or JSON; check " + line)
	}
	return errors.New("not a valid kubeconfig in YAML or JSON")
}

// checkURLs returns an error if a URL of a cluster is invalid. The error does not quote the URL,
// unlike the errors of client-go, because a URL may contain a password.
func checkURLs(c *api.Cluster) error {
	if _, _, err := rest.DefaultServerURL(c.Server, "/api", v1.SchemeGroupVersion, true); err != nil && c.Server != "" {
		return errors.New("server is not a valid URL")
	}
	if c.ProxyURL == "" {
		return nil
	}
	if u, err := url.Parse(c.ProxyURL); err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return errors.New("proxy-url is not a valid URL; must be an http, https or socks5 URL")
	}
	return nil
}

// KubeconfigVersion returns the current version of the kubeconfig file.
func (m *Manager) KubeconfigVersion() FileVersion { return statFile(m.Kubeconfig) }

// MustReconnect reports whether podd must connect again. usedVersion is the version of the
// kubeconfig that the current connection uses. MustReconnect returns true if the kubeconfig has
// changed and is valid, or if Bootstrap must request a new credential. It returns an error if the
// kubeconfig has changed and is invalid.
func (m *Manager) MustReconnect(usedVersion FileVersion) (bool, error) {
	now := statFile(m.Kubeconfig)
	if now == usedVersion {
		return m.needsBootstrap(), nil
	}
	if m.BootstrapKubeconfig != "" && now == (FileVersion{}) {
		return true, nil // the user has removed the kubeconfig to request a new bootstrap
	}
	err := m.checkKubeconfig()
	return err == nil, err
}

// A FileVersion identifies a version of a file. It is comparable.
type FileVersion struct {
	size    int64
	modTime time.Time
}

// statFile returns the version of a file, or the zero FileVersion if the file does not exist or
// cannot be examined.
func statFile(path string) FileVersion {
	info, err := os.Stat(path)
	if err != nil {
		return FileVersion{}
	}
	return FileVersion{info.Size(), info.ModTime()}
}

// checkKubeconfig returns the error that NewClient would return now for the
// kubeconfig file, or nil. Unlike NewClient, it does not store a certificate.
func (m *Manager) checkKubeconfig() error {
	config, err := readKubeconfig(m.Kubeconfig)
	if err == nil {
		_, err = apiserver.AuthorityDigest(config)
	}
	if err == nil {
		_, err = loadClientCert(config)
	}
	if err != nil {
		return KubeconfigError{fmt.Errorf("reading the changed --kubeconfig %s: %w; the previous kubeconfig stays in use", m.Kubeconfig, err)}
	}
	return nil
}
