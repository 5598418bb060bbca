package stack

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// loadTestImages imports the test images.
func (s *Stack) loadTestImages(ctx context.Context) error {
	begin := time.Now()
	err := s.LoadImages(ctx, s.Tools.Images, PauseImage, BusyboxImage, WebImage)
	s.Durations.Images = time.Since(begin)
	return err
}

// LoadImages imports the images of a tarball and waits until CRI lists the given names. The wait is
// necessary because the CRI plugin of containerd adds an image only after it has received an event.
// The images are removed with the stack.
func (s *Stack) LoadImages(ctx context.Context, tarball string, names ...string) error {
	add := s.importImages
	if s.isCRIO() {
		add = s.copyImages
	}
	if err := add(ctx, tarball); err != nil {
		return err
	}
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := runtimev1.NewImageServiceClient(conn)
	for _, image := range names {
		err := s.waitUntil(ctx, "image "+image+" is loaded", func(ctx context.Context) (bool, error) {
			reply, err := client.ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: image}})
			return reply.GetImage() != nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// importImages imports the images of a tarball into containerd.
func (s *Stack) importImages(ctx context.Context, tarball string) error {
	cmd := exec.CommandContext(ctx, s.Tools.Ctr, "--address", s.Socket(), "--namespace", "k8s.io",
		"images", "import", "--snapshotter", s.Snapshotter, tarball)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("loading the images of %s: %w: %s", tarball, err, strings.TrimSpace(string(out)))
	}
	return nil
}
