package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// client holds the connection to the server during one call of URL.Run. When a certificate file
// changes, client opens a new connection. It uses HTTP/1.1 only, so that the first request that
// times out on a broken connection closes the connection.
type client struct {
	*URL
	http       *http.Client // nil before the first request
	fileStamps [3]stamp     // stamps of CAFile, CertFile and KeyFile when http was created
}

// httpClient returns the client for the next request. It creates a new client if a certificate
// file has changed.
func (c *client) httpClient() (*http.Client, error) {
	var fileStamps [3]stamp
	for i, path := range []string{c.opts.CAFile, c.opts.CertFile, c.opts.KeyFile} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", path, withoutPath(err))
		}
		fileStamps[i] = stampOf(info)
	}
	if c.http != nil && fileStamps == c.fileStamps {
		return c.http, nil
	}
	tlsConfig, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	c.close()
	c.fileStamps, c.http = fileStamps, &http.Client{
		CheckRedirect: CheckRedirect,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: c.dialer(),
			TLSClientConfig: tlsConfig, MaxIdleConns: 1, IdleConnTimeout: 90 * time.Second,
		},
	}
	return c.http, nil
}

// close closes the connection, if there is one.
func (c *client) close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
		c.http = nil
	}
}

func (c *client) dialer() func(context.Context, string, string) (net.Conn, error) {
	if c.dial != nil {
		return c.dial
	}
	return (&net.Dialer{}).DialContext // needs no timeout, because the context of the request limits it
}

// tlsConfig returns the TLS configuration with the current content of the certificate files.
func (c *client) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.opts.CAFile != "" {
		data, _, err := readSettingsFile(c.opts.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CA file %q: %w", c.opts.CAFile, withoutPath(err))
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("reading the CA file %q: it contains no certificate in PEM format", c.opts.CAFile)
		}
	}
	if c.opts.CertFile == "" {
		return config, nil
	}
	cert, _, err := readSettingsFile(c.opts.CertFile)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate %q: %w", c.opts.CertFile, withoutPath(err))
	}
	key, _, err := readSettingsFile(c.opts.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the client key %q: %w", c.opts.KeyFile, withoutPath(err))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate %q and key %q: %w", c.opts.CertFile, c.opts.KeyFile, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

const maxRedirects = 5

// CheckRedirect implements http.Client.CheckRedirect. It allows a redirect only to the same host,
// and never from https to http. Other redirects are not allowed because the redirected request
// contains the headers of the first request.
func CheckRedirect(to *http.Request, via []*http.Request) error {
	previousURL := via[len(via)-1].URL
	isUpgrade := previousURL.Scheme == "http" && to.URL.Scheme == "https"
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("too many redirects (limit %d)", maxRedirects)
	case previousURL.Scheme == "https" && to.URL.Scheme != "https":
		return fmt.Errorf("redirect to %s rejected, because it leads from https to %s", withoutSecrets(to.URL), to.URL.Scheme)
	case to.URL.Hostname() != previousURL.Hostname(), !isUpgrade && portOf(to.URL) != portOf(previousURL):
		return fmt.Errorf("redirect to %s rejected, because the target has another host or port; if the redirect is intended, use the target as the manifest URL", withoutSecrets(to.URL))
	}
	return nil
}

// portOf returns the port of a URL, or the default of its scheme.
func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
