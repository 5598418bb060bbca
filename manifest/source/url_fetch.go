package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// validators are the values by which a server recognizes content that it has sent before.
type validators struct{ etag, lastModified string }

// fetchResult is the result of one request: content, "not modified", or an error.
type fetchResult struct {
	data []byte
	validators
	isNotModified bool
	err           error
	// hasNoResponse reports whether there was no HTTP response. retryAfter is the server's
	// Retry-After; 0 if there is none.
	hasNoResponse bool
	retryAfter    time.Duration
	// areHeadersExposed reports whether all users can read the header file.
	areHeadersExposed bool
}

// fetch sends one request with the validators of the current content. Errors contain neither
// headers nor userinfo nor query.
func (c *client) fetch(ctx context.Context, currentValidators validators) fetchResult {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var result fetchResult
	request, areHeadersExposed, err := c.request(ctx, currentValidators)
	result.areHeadersExposed = areHeadersExposed
	if err != nil {
		result.err = err
		return result
	}
	httpClient, err := c.httpClient()
	if err != nil {
		result.err = err
		return result
	}
	response, err := httpClient.Do(request)
	if err != nil {
		result.err, result.hasNoResponse = c.stripURL(err), true
		return result
	}
	defer response.Body.Close()
	result.retryAfter = parseRetryAfter(response.Header.Get("Retry-After"), c.opts.Now())
	result.validators = validators{response.Header.Get("ETag"), response.Header.Get("Last-Modified")}
	switch {
	case response.StatusCode == http.StatusNotModified && currentValidators != validators{}:
		result.isNotModified = true
	case response.StatusCode != http.StatusOK:
		result.err = fmt.Errorf("the server responded with %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	default:
		result.data, result.err = readBody(response)
		result.err = c.stripURL(result.err)
	}
	return result
}

// request returns the next HTTP request, with the configured headers and with the validators of
// the current content. areHeadersExposed reports whether all users can read the header file.
func (c *client) request(ctx context.Context, currentValidators validators) (r *http.Request, areHeadersExposed bool, err error) {
	target, err := c.nextURL()
	if err != nil {
		return nil, false, err
	}
	if r, err = http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil); err != nil {
		return nil, false, errors.New("invalid URL")
	}
	r.Header.Set("User-Agent", "podd")
	r.Header.Set("Accept", "application/yaml, application/json;q=0.9, */*;q=0.1")
	setHeaders(r, c.opts.Header)
	if c.opts.HeaderFile != "" {
		data, info, err := readSettingsFile(c.opts.HeaderFile)
		if err != nil {
			return nil, false, fmt.Errorf("reading the header file %q: %w", c.opts.HeaderFile, withoutPath(err))
		}
		extraHeaders, err := parseHeaders(data)
		if err != nil {
			return nil, false, fmt.Errorf("reading the header file %q: %w", c.opts.HeaderFile, err)
		}
		areHeadersExposed = info.Mode()&0o004 != 0
		setHeaders(r, extraHeaders)
	}
	setHeaders(r, http.Header{"If-None-Match": headerValues(currentValidators.etag), "If-Modified-Since": headerValues(currentValidators.lastModified)})
	return r, areHeadersExposed, nil
}

// setHeaders adds extraHeaders to r and replaces headers of r with the same name. It sets r.Host
// for the header Host, as net/http requires.
func setHeaders(r *http.Request, extraHeaders http.Header) {
	for name, values := range extraHeaders {
		name = http.CanonicalHeaderKey(name)
		switch {
		case len(values) == 0:
		case name == "Host":
			r.Host = values[0]
		default:
			r.Header[name] = values
		}
	}
}

// headerValues returns a list that contains value. It returns nil if value is "".
func headerValues(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// readBody reads the whole body of a response.
func readBody(r *http.Response) ([]byte, error) {
	if r.ContentLength > MaxSize {
		return nil, errTooLarge
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, MaxSize+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("response truncated after %d bytes", len(data))
	case err != nil:
		return nil, err
	case len(data) > MaxSize:
		return nil, errTooLarge
	}
	hasLength := r.ContentLength >= 0 || len(r.TransferEncoding) > 0 || r.Uncompressed || r.ProtoMajor > 1
	if !hasLength && len(data) > 0 && !json.Valid(data) {
		return nil, errors.New("the response has no length, so podd cannot detect whether the response is truncated; make the server send the header Content-Length, or send JSON instead of YAML")
	}
	return data, nil
}

// stripURL removes the URL, with its query, from an error of net/http.
func (c *client) stripURL(err error) error {
	var urlErr *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Errorf("no complete response within %v", c.opts.Timeout)
	case errors.As(err, &urlErr):
		err = urlErr.Err
	}
	const maxLength = 300
	if text := err.Error(); len(text) > maxLength {
		return errors.New(strings.ToValidUTF8(text[:maxLength], "") + "…")
	}
	return err
}

// parseRetryAfter parses the header Retry-After, which contains seconds or a date. It returns
// zero if the header is missing or invalid.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n > 0 {
		return min(time.Duration(min(n, 1<<20))*time.Second, maxRequestInterval)
	}
	if t, err := http.ParseTime(value); err == nil && t.After(now) {
		return min(t.Sub(now), maxRequestInterval)
	}
	return 0
}
