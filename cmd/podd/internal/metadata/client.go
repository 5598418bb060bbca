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
	// defaultBase is the link-local address that all clouds use.
	defaultBase = "http://169.254.169.254"
	// requestTimeout can be short, because the service is on the host.
	requestTimeout = 3 * time.Second
	// maxResponse limits a response, in bytes.
	maxResponse = 256 << 10
)

// errNotFound is the error of a path that does not exist.
var errNotFound = errors.New("404 Not Found")

type client struct {
	base string
	http *http.Client
}

func newClient(base string) *client {
	if base == "" {
		base = defaultBase
	}
	// No proxy, because a proxy would get the metadata of the proxy's host.
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: requestTimeout}).DialContext, MaxResponseHeaderBytes: 16 << 10}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{base, &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: noRedirect}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// get returns the body of the response for a path.
func (c *client) get(ctx context.Context, method, path string, header map[string]string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
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
		return nil, fmt.Errorf("%s: status %d", path, resp.StatusCode)
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

// line returns the content of a path without surrounding white space.
func (c *client) line(ctx context.Context, path string, header map[string]string) (string, error) {
	body, err := c.get(ctx, http.MethodGet, path, header)
	return strings.TrimSpace(string(body)), err
}

// object decodes the JSON content of a path into a value.
func (c *client) object(ctx context.Context, path string, header map[string]string, into any) error {
	body, err := c.get(ctx, http.MethodGet, path, header)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
