package client

import (
	"context"
	"net/url"
)

// Credential sends a request about credentials and decodes the response into into.
func (p *Client) Credential(ctx context.Context, method string, q url.Values, into any) error {
	resp, err := p.call(ctx, method, "/v1/credential", q, nil)
	if err != nil {
		return err
	}
	return p.decode(resp, into)
}
