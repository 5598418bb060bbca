package client

import (
	"context"
	"net/http"

	"podd/server"
)

// Accept sends podd a request to accept a change of the host. It returns a message for the user
// that describes the effect of the change.
func (p *Client) Accept(ctx context.Context, change server.AcceptedChange) (message string, err error) {
	var a server.AcceptResponse
	err = p.callAndDecode(ctx, http.MethodPost, "/v1/accept", nil, change, nil, &a)
	return a.Message, err
}
