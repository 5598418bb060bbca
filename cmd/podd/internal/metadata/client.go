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
	// everywhere is where clouds have it, a link-local address.
	everywhere = "http://169.254.169.254"
	// askTime bounds a request; whoever has the service has it near.
	askTime = 3 * time.Second
	// maxAnswer bounds what is read of one.
	maxAnswer = 256 << 10
)

// errNone is that there is no such thing.
var errNone = errors.New("404 Not Found")

type client struct {
	base string
	http *http.Client
}

func newClient(base string) *client {
	if base == "" {
		base = everywhere
	}
	// Without a proxy: it would tell what its own machine is.
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: askTime}).DialContext, MaxResponseHeaderBytes: 16 << 10}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{base, &http.Client{Transport: transport, Timeout: askTime, CheckRedirect: refuse}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask returns what is at a path.
func (c *client) ask(ctx context.Context, method, path string, header map[string]string) ([]byte, error) {
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
		return nil, fmt.Errorf("%s: %w", path, errNone)
	default:
		return nil, fmt.Errorf("%s: status %d", path, resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = fmt.Errorf("it has more than %d KiB", maxAnswer>>10)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// word is what is at a path, in one line.
func (c *client) word(ctx context.Context, path string, header map[string]string) (string, error) {
	text, err := c.ask(ctx, http.MethodGet, path, header)
	return strings.TrimSpace(string(text)), err
}

func (c *client) object(ctx context.Context, path string, header map[string]string, into any) error {
	text, err := c.ask(ctx, http.MethodGet, path, header)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
