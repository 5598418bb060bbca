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
	// maxResponse limits a response.
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
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{base, &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: refuse}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// get returns the content of a path.
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
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err == nil && len(text) > maxResponse {
		err = fmt.Errorf("it has more than %d KiB", maxResponse>>10)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// line returns the content of a path, which must be one line.
func (c *client) line(ctx context.Context, path string, header map[string]string) (string, error) {
	text, err := c.get(ctx, http.MethodGet, path, header)
	return strings.TrimSpace(string(text)), err
}

func (c *client) object(ctx context.Context, path string, header map[string]string, into any) error {
	text, err := c.get(ctx, http.MethodGet, path, header)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
