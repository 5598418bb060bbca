package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/wording"
)

// maxBodyBytes is the maximum number of bytes that a probe reads from a response body.
const maxBodyBytes = 10 << 10

// probeHTTP runs an HTTP probe. It passes if the status is 200 to 399.
func (t Target) probeHTTP(ctx context.Context, a *v1.HTTPGetAction) (Result, error) {
	req, err := t.newRequest(ctx, a, userAgent)
	if err != nil {
		return Result{}, err
	}
	res, err := t.newClient().Do(req)
	if err != nil {
		return newFailure(requestErrorText(err))
	}
	defer res.Body.Close()
	var body strings.Builder // only filled if the response is a redirect
	bodyWriter := io.Discard
	if isRedirect(res.StatusCode) {
		bodyWriter = &body
	}
	if _, err := io.Copy(bodyWriter, io.LimitReader(res.Body, maxBodyBytes)); err != nil {
		// Like the kubelet, podd counts this attempt neither as a success nor as a failure.
		return Result{}, fmt.Errorf("reading the response body: %w", err)
	}
	switch {
	case res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusBadRequest:
		return newFailure(fmt.Sprintf("HTTP probe failed with statuscode: %d", res.StatusCode))
	case isRedirect(res.StatusCode):
		// The redirect leads to another host, and podd sends no request to that host.
		// Kubernetes' tests expect this wording in the event.
		return Result{Passed: true, IsWarning: true, Message: "Probe terminated redirects, Response body: " + wording.FirstLine(body.String())}, nil
	}
	return Result{Passed: true}, nil
}

// isRedirect reports whether a status is 3xx. If the final response has such a status, it is a
// redirect to another host.
func isRedirect(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusBadRequest
}

func (t Target) newClient() *http.Client {
	return &http.Client{
		Timeout:       t.Timeout,
		CheckRedirect: followSameHost,
		Transport: &http.Transport{
			// Like the kubelet, podd does not verify the server's certificate.
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DialContext:        newDialer().DialContext,
			DisableKeepAlives:  true,
			DisableCompression: true,
			Proxy:              nil,
		},
	}
}

func (t Target) newRequest(ctx context.Context, a *v1.HTTPGetAction, agent string) (*http.Request, error) {
	host, err := t.host(a.Host)
	if err != nil {
		return nil, err
	}
	port, err := t.port(a.Port)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(a.Path)
	if err != nil {
		// Send the invalid path unchanged, because the server may accept it.
		u = &url.URL{Path: a.Path}
	}
	u.Scheme, u.Host = strings.ToLower(string(a.Scheme)), net.JoinHostPort(host, port)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("the host and the path of the handler do not form a valid URL")
	}
	req.Header = newHeader(a.HTTPHeaders, agent)
	req.Host = req.Header.Get("Host")
	return req, nil
}

// newHeader returns the headers in list, with defaults for User-Agent and Accept. If list has an
// Accept header with an empty value, no Accept header is sent.
func newHeader(list []v1.HTTPHeader, agent string) http.Header {
	h := http.Header{}
	for _, v := range list {
		h.Add(v.Name, v.Value)
	}
	if _, set := h["User-Agent"]; !set {
		h.Set("User-Agent", agent)
	}
	if values, set := h["Accept"]; !set {
		h.Set("Accept", "*/*")
	} else if values[0] == "" {
		h.Del("Accept")
	}
	return h
}

// followSameHost implements http.Client.CheckRedirect. It follows at most 10 redirects to the host
// of the first request. It does not follow a redirect to another host, so that the client returns
// the redirect as the response.
func followSameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// requestErrorText returns the message of err without the query of the URL, because the query may
// contain a secret.
func requestErrorText(err error) string {
	failure, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err.Error()
	}
	target := "the redirect"
	if u, err := url.Parse(failure.URL); err == nil {
		target = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return fmt.Sprintf("%s %q: %s", failure.Op, target, failure.Err)
}
