package stack

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// load puts the test images into containerd.
func (s *Stack) load(ctx context.Context) error {
	begin := time.Now()
	err := s.Load(ctx, s.Tools.Images, PauseImage, BusyboxImage, WebImage)
	s.Took.Images = time.Since(begin)
	return err
}

// Load puts the images of a tarball into containerd and waits until its CRI,
// which learns of them by events, has those of the names too. They are gone
// with the stack.
func (s *Stack) Load(ctx context.Context, tarball string, names ...string) error {
	cmd := exec.CommandContext(ctx, s.Tools.Ctr, "--address", s.Socket(), "--namespace", "k8s.io",
		"images", "import", "--snapshotter", s.Snapshotter, tarball)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("loading the images of %s: %w: %s", tarball, err, strings.TrimSpace(string(out)))
	}
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := runtimev1.NewImageServiceClient(conn)
	for _, image := range names {
		err := s.until(ctx, "image "+image+" is loaded", func(ctx context.Context) (bool, error) {
			reply, err := client.ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: image}})
			return reply.GetImage() != nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
