package client

import (
	"context"
	"net/http"

	"podd/server"
)

// ListImages returns the images on the node.
func (p *Client) ListImages(ctx context.Context) (server.ImageList, error) {
	return requestImages[server.ImageList](ctx, p, http.MethodGet, "/v1/images", nil)
}

// RemoveImage removes the image with a name or ID, and returns the removed image.
func (p *Client) RemoveImage(ctx context.Context, name string) (server.Image, error) {
	return requestImages[server.Image](ctx, p, http.MethodPost, "/v1/images/remove", server.ImageTarget{Name: name})
}

// PruneImages removes all images that are not in use.
func (p *Client) PruneImages(ctx context.Context) (server.PrunedImages, error) {
	return requestImages[server.PrunedImages](ctx, p, http.MethodPost, "/v1/images/prune", nil)
}

// requestImages sends a request about images. It waits without a limit, because podd may be removing
// other images, which takes minutes on a slow disk.
func requestImages[T any](ctx context.Context, p *Client, method, path string, body any) (reply T, err error) {
	resp, err := p.call(ctx, method, path, nil, body)
	if err != nil {
		return reply, err
	}
	return reply, p.decode(resp, &reply)
}
