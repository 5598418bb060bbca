//go:build e2e

package stack_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
)

func TestPull_LoopbackRegistry(t *testing.T) {
	onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
		r, err := registry.Start(registry.Options{User: "ann", Password: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		image, err := registry.FromTarball(s.Tools.Images, stack.BusyboxImage)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := r.Push(image, "team/busybox:1")
		if err != nil {
			t.Fatal(err)
		}
		client := runtimev1.NewImageServiceClient(dial(t, s))
		pull := func(ctx context.Context, password string) error {
			_, err := client.PullImage(ctx, &runtimev1.PullImageRequest{
				Image: &runtimev1.ImageSpec{Image: ref},
				Auth:  &runtimev1.AuthConfig{Username: "ann", Password: password},
			})
			return err
		}
		if err := pull(t.Context(), "wrong"); err == nil || !strings.Contains(err.Error(), "401") && !strings.Contains(err.Error(), "unauthorized") {
			t.Errorf("wrong password: got error %v, want 401 or unauthorized", err)
		}
		r.Inject(registry.Fault{PathPart: "/manifests/", Status: 503})
		if err := pull(t.Context(), "secret"); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("failing registry: got error %v, want 503", err)
		}
		r.ClearFaults()
		r.Inject(registry.Fault{PathPart: "/manifests/"})
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := pull(short, "secret"); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("hanging registry: got error %v, want DeadlineExceeded", err)
		}
		r.ClearFaults()
		// With CRI-O, this pull may fail once, because it joins the pull that is being canceled.
		err = pull(t.Context(), "secret")
		if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Canceled {
			err = pull(t.Context(), "secret")
		}
		if err != nil {
			t.Errorf("working registry: got error %v, want none", err)
		}
	})
}
