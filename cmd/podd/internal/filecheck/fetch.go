package filecheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"podd/manifest"
	"podd/manifest/source"
)

// fetchTimeout is the timeout of the request for one URL.
const fetchTimeout = 30 * time.Second

// fetch returns the content of a URL, or the error of the request.
func fetch(ctx context.Context, rawURL string) Input {
	in := Input{path: rawURL, kind: manifest.KindURL}
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		in.err = errors.New("not a valid URL; must begin with http:// or https://")
		return in
	}
	displayURL := *u
	displayURL.User, displayURL.RawQuery, displayURL.Fragment = nil, "", ""
	in.path = displayURL.String()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		in.err = errors.New("not a valid URL; must begin with http:// or https://")
		return in
	}
	client := &http.Client{CheckRedirect: source.CheckRedirect}
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the text of a url.Error contains the query, which may contain a password
		}
		in.err = fmt.Errorf("cannot be fetched: %w", err)
		return in
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		in.err = fmt.Errorf("cannot be fetched: the server returned %s", resp.Status)
		return in
	}
	in.data, in.err = readLimited(resp.Body)
	return in
}
