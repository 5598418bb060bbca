package cri

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// verboseImages is an image service whose ImageStatus returns the given verbose information.
type verboseImages struct {
	api.ImageServiceClient
	info map[string]string
}

func (i verboseImages) ImageStatus(_ context.Context, q *api.ImageStatusRequest, _ ...grpc.CallOption) (*api.ImageStatusResponse, error) {
	if !q.GetVerbose() {
		return &api.ImageStatusResponse{}, nil
	}
	return &api.ImageStatusResponse{Image: &api.Image{Id: "x"}, Info: i.info}, nil
}

func TestImageCreated(t *testing.T) {
	built := time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		info map[string]string
		want time.Time
		err  bool
	}{
		"containerd":     {map[string]string{"info": `{"chainID":"sha256:1","imageSpec":{"created":"2024-03-01T12:00:00Z","architecture":"amd64"}}`}, built, false},
		"no date":        {map[string]string{"info": `{"imageSpec":{"architecture":"amd64"}}`}, time.Time{}, false},
		"no information": {nil, time.Time{}, false},
		"not understood": {map[string]string{"info": `[`}, time.Time{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Client{images: verboseImages{info: test.info}, timeout: time.Second}
			got, err := c.ImageCreated(t.Context(), "web:1")
			if !got.Equal(test.want) || (err != nil) != test.err {
				t.Errorf("got %v, error %v; want %v and an error: %t", got, err, test.want, test.err)
			}
		})
	}
}
