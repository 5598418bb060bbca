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
)

// bodyLimit is the most that is read of an answer's body.
const bodyLimit = 10 << 10

// get passes with a status of 200 to 399.
func (t Target) get(ctx context.Context, a *v1.HTTPGetAction) (Result, error) {
	req, err := t.request(ctx, a, userAgent)
	if err != nil {
		return Result{}, err
	}
	res, err := t.client().Do(req)
	if err != nil {
		return failed(requestError(err))
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, bodyLimit)); err != nil {
		// The kubelet takes it for an attempt that came to nothing.
		return Result{}, fmt.Errorf("reading the answer: %w", err)
	}
	switch {
	case res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusBadRequest:
		return failed(fmt.Sprintf("HTTP probe failed with statuscode: %d", res.StatusCode))
	case res.StatusCode >= http.StatusMultipleChoices:
		return Result{Passed: true, Warning: true, Message: "the answer redirects to another host, which is not asked"}, nil
	}
	return Result{Passed: true}, nil
}

func (t Target) client() *http.Client {
	return &http.Client{
		Timeout:       t.Timeout,
		CheckRedirect: sameHost,
		Transport: &http.Transport{
			// It asks whether somebody is there, not who.
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DialContext:        dialer().DialContext,
			DisableKeepAlives:  true,
			DisableCompression: true,
			Proxy:              nil,
		},
	}
}

func (t Target) request(ctx context.Context, a *v1.HTTPGetAction, agent string) (*http.Request, error) {
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
		u = &url.URL{Path: a.Path} // as it stands; the server may know it
	}
	u.Scheme, u.Host = strings.ToLower(string(a.Scheme)), net.JoinHostPort(host, port)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("its path and host make no URL")
	}
	req.Header = header(a.HTTPHeaders, agent)
	req.Host = req.Header.Get("Host")
	return req, nil
}

// header is the user's; an Accept that is set to nothing is not sent.
func header(list []v1.HTTPHeader, agent string) http.Header {
	h := http.Header{}
	for _, one := range list {
		h.Add(one.Name, one.Value)
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

// sameHost follows redirects to the host that was asked; any other is an answer.
func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// requestError leaves out the query, in which a secret may stand.
func requestError(err error) string {
	failure, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err.Error()
	}
	at := "the redirect"
	if u, err := url.Parse(failure.URL); err == nil {
		at = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return fmt.Sprintf("%s %q: %s", failure.Op, at, failure.Err)
}
