//go:build e2e

package cri_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/runtime/runtimetest/stack/tools"
)

// TestPullErrors checks the errors of pulls by real runtimes.
func TestPullErrors(t *testing.T) {
	for _, flavor := range tools.Flavors() {
		t.Run(string(flavor), func(t *testing.T) {
			s := stack.ForTest(t, stack.Options{Flavor: flavor})
			c, err := cri.Dial(cri.Options{Endpoint: s.Endpoint()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			open, ref := serveImage(t, s, registry.Options{})
			for _, code := range []int{401, 403, 404, 429, 500, 503} {
				open.Inject(registry.Fault{PathPart: "/manifests/", Status: code})
				wantPullError(t, c, ref, nil, func(e *runtime.PullError) bool { return e.Status == code && !e.Unreachable })
				open.ClearFaults()
			}
			wantPullError(t, c, open.Host()+"/team/none:1", nil, func(e *runtime.PullError) bool { return e.Status == 404 })
			wantPullError(t, c, "127.0.0.1:1/x:1", nil, func(e *runtime.PullError) bool {
				return e.Unreachable && e.Registry == "127.0.0.1:1" && strings.HasSuffix(e.Error(), "cannot be reached (connection refused)")
			})
			wantPullError(t, c, "a b", nil, func(e *runtime.PullError) bool { return e.Reason == "InvalidImageName" })
			_, locked := serveImage(t, s, registry.Options{User: "ann", Password: "secret"})
			wantPullError(t, c, locked, nil, func(e *runtime.PullError) bool { return e.Status == 401 })
			wantPullError(t, c, locked, &api.AuthConfig{Username: "ann", Password: "hunter2"}, func(e *runtime.PullError) bool {
				return e.Status == 401 && !strings.Contains(e.Error(), "hunter2")
			})
			// Base64 of "hunter2", which does not have the form user:password.
			wantPullError(t, c, locked, &api.AuthConfig{Auth: "aHVudGVyMg=="}, func(e *runtime.PullError) bool {
				return !strings.Contains(e.Error(), "hunter2")
			})
			open.Inject(registry.Fault{PathPart: "/manifests/"})
			// The pull has no deadline, because the runtime would also apply the deadline. The
			// caller cancels the pull.
			unwanted, giveUp := context.WithCancel(t.Context())
			time.AfterFunc(200*time.Millisecond, giveUp)
			if _, err := c.PullImage(unwanted, ref, nil, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled pull: got error %v, want Canceled", err)
			}
			open.ClearFaults()
			if id, err := c.PullImage(t.Context(), locked, &api.AuthConfig{Username: "ann", Password: "secret"}, nil); err != nil || id == "" {
				t.Errorf("pull with the right password: got %q, error %v; want an ID", id, err)
			}
			if i, present, err := c.ImageStatus(t.Context(), locked); err != nil || !present || i.SizeBytes == 0 {
				t.Errorf("ImageStatus of the pulled image: got %+v, exists %t, error %v; want an existing image with a size", i, present, err)
			}
		})
	}
}

// serveImage serves an image from a registry until the test ends.
func serveImage(t *testing.T, s *stack.Stack, o registry.Options) (*registry.Registry, string) {
	t.Helper()
	r, err := registry.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	image, err := registry.FromTarball(s.Tools.Images, stack.BusyboxImage)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := r.Push(image, "team/busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	return r, ref
}

// wantPullError checks that a pull fails with an error for which matches returns true.
func wantPullError(t *testing.T, c *cri.Client, image string, auth *api.AuthConfig, matches func(*runtime.PullError) bool) {
	t.Helper()
	_, err := c.PullImage(t.Context(), image, auth, nil)
	var pull *runtime.PullError
	if !errors.As(err, &pull) || pull.Image != image || !matches(pull) {
		t.Errorf("pulling %s: got PullError %+v (from error %v), want one of this image with the expected fields", image, pull, err)
	}
}
