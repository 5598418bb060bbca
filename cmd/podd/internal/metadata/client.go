package metadata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// defaultURL is the link-local URL of the metadata service in all Clouds.
	defaultURL = "http://169.254.169.254"
	// requestTimeout is short, because the service usually runs on the host of the instance.
	requestTimeout = 3 * time.Second
	// maxResponse is the maximum size of a response in bytes.
	maxResponse = 256 << 10
)

// errNotFound is the cause of the error for a path that the service does not have.
var errNotFound = errors.New("404 Not Found")

// A client is an HTTP client of a metadata service.
type client struct {
	baseURL string
	http    *http.Client
}

// newClient returns a client of the service with the URL base. If base is "", the URL is
// defaultURL. The caller must close the client.
func newClient(base string) *client {
	if base == "" {
		base = defaultURL
	}
	// Proxy is not set, because a proxy would return the metadata of the instance on which the
	// proxy runs.
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: requestTimeout}).DialContext, MaxResponseHeaderBytes: 16 << 10}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{base, &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: noRedirect}}
}

// close closes idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// request sends a request and returns the body of the response. A status other than 200 is an
// error.
func (c *client) request(ctx context.Context, method, path string, header map[string]string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.baseURL+path, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w", path, errNotFound)
	default:
		return nil, fmt.Errorf("%s %s: got status %d", method, path, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err == nil && len(body) > maxResponse {
		err = fmt.Errorf("the response is larger than %d KiB", maxResponse>>10)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return body, nil
}

// getText returns the content of a path without white space around it.
func (c *client) getText(ctx context.Context, path string, header map[string]string) (string, error) {
	body, err := c.request(ctx, http.MethodGet, path, header)
	return strings.TrimSpace(string(body)), err
}

// getJSON decodes the JSON content of a path into a value.
func (c *client) getJSON(ctx context.Context, path string, header map[string]string, into any) error {
	body, err := c.request(ctx, http.MethodGet, path, header)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
