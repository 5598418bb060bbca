package client

import (
	"context"
	"net/http"

	"podd/server"
)

// Accept requests that a change takes effect. It returns a message that describes what
// podd does next.
func (p *Client) Accept(ctx context.Context, change server.Acceptance) (message string, err error) {
	var a server.Accepted
	err = p.fetch(ctx, http.MethodPost, "/v1/accept", nil, change, nil, &a)
	return a.Message, err
}
