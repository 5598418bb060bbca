package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ImageCreated returns the time at which an image on the node was built. It returns the zero Time
// if the runtime does not report the time or the image does not contain it. CRI has no field for
// this time, so ImageCreated parses the verbose status of containerd and CRI-O.
func (c *Client) ImageCreated(ctx context.Context, image string) (time.Time, error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ImageStatus, &api.ImageStatusRequest{Image: imageSpec(image), Verbose: true})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the build time of image %s: %w", image, err)
	}
	var info struct {
		ImageSpec struct {
			Created time.Time `json:"created"`
		} `json:"imageSpec"`
	}
	if text := r.GetInfo()["info"]; text != "" {
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			return time.Time{}, fmt.Errorf("reading the build time of image %s: the runtime's verbose image status is not valid JSON", image)
		}
	}
	return info.ImageSpec.Created, nil
}
