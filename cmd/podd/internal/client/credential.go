package client

import (
	"context"
	"net/url"
)

// RequestCredential sends a request for /v1/credential and decodes the response into a value. The
// method POST issues a credential, and DELETE revokes all credentials.
func (p *Client) RequestCredential(ctx context.Context, method string, query url.Values, into any) error {
	resp, err := p.call(ctx, method, "/v1/credential", query, nil)
	if err != nil {
		return err
	}
	return p.decode(resp, into)
}
