package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "k8s.io/api/core/v1"
)

// ListEvents returns all events that podd has stored.
func (p *Client) ListEvents(ctx context.Context) (*v1.EventList, error) {
	list := &v1.EventList{}
	if err := p.callAndDecode(ctx, http.MethodGet, "/v1/events", nil, nil, nil, list); err != nil {
		return nil, err
	}
	return list, nil
}

// WatchEvents passes every event that is newer than a resource version to onEvent. It returns when
// onEvent returns true (done) or an error.
func (p *Client) WatchEvents(ctx context.Context, revision string, onEvent func(*v1.Event) (done bool, err error)) error {
	resp, err := p.call(ctx, http.MethodGet, "/v1/events", url.Values{"watch": {"1"}, "revision": {revision}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decodeEach(ctx, resp.Body, onEvent)
}
