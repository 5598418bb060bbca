package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ImageCreated returns when a present image was built; zero if the runtime or the image
// does not have that. CRI has no field for it: containerd and CRI-O return it in their
// verbose status.
func (c *Client) ImageCreated(ctx context.Context, image string) (time.Time, error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ImageStatus, &api.ImageStatusRequest{Image: named(image), Verbose: true})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading when image %s was built: %w", image, err)
	}
	var info struct {
		ImageSpec struct {
			Created time.Time `json:"created"`
		} `json:"imageSpec"`
	}
	if text := r.GetInfo()["info"]; text != "" {
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			return time.Time{}, fmt.Errorf("reading when image %s was built: the runtime's verbose image status is not valid JSON", image)
		}
	}
	return info.ImageSpec.Created, nil
}
