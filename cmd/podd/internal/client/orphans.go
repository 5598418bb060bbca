package client

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// Orphans returns the orphaned pod directories.
func (p *Client) Orphans(ctx context.Context) ([]server.Orphan, error) {
	resp, err := p.call(ctx, http.MethodGet, "/v1/orphans", nil, nil)
	if err != nil {
		return nil, err
	}
	var all []server.Orphan
	if err := p.decode(resp, &all); err != nil {
		return nil, err
	}
	return all, nil
}

// RemoveOrphan removes the pod directory with a UID, and returns when it is removed. A
// large directory takes long.
func (p *Client) RemoveOrphan(ctx context.Context, uid types.UID) error {
	resp, err := p.call(ctx, http.MethodPost, "/v1/orphans/remove", nil, server.OrphanTarget{UID: uid})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
