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

// fetchTimeout limits the request of one URL.
const fetchTimeout = 30 * time.Second

// fetchText fetches a URL.
func fetchText(ctx context.Context, name string) Text {
	t := Text{path: name, kind: manifest.KindURL}
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		t.err = errors.New("not a URL")
		return t
	}
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	t.path = shown.String()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		t.err = errors.New("not a URL")
		return t
	}
	client := &http.Client{CheckRedirect: source.CheckRedirect}
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // url.Error contains the query, which may contain a password
		}
		t.err = fmt.Errorf("cannot be fetched: %w", err)
		return t
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.err = fmt.Errorf("cannot be fetched: the server returned %s", resp.Status)
		return t
	}
	t.data, t.err = readCapped(resp.Body)
	return t
}
