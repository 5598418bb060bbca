package client

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// ListOrphans returns the orphaned pod directories.
func (p *Client) ListOrphans(ctx context.Context) ([]server.Orphan, error) {
	resp, err := p.call(ctx, http.MethodGet, "/v1/orphans", nil, nil)
	if err != nil {
		return nil, err
	}
	var orphans []server.Orphan
	if err := p.decode(resp, &orphans); err != nil {
		return nil, err
	}
	return orphans, nil
}

// RemoveOrphan removes the orphaned pod directory with a UID. It returns when the directory has
// been removed, which may take minutes for a large directory.
func (p *Client) RemoveOrphan(ctx context.Context, uid types.UID) error {
	resp, err := p.call(ctx, http.MethodPost, "/v1/orphans/remove", nil, server.OrphanTarget{UID: uid})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
