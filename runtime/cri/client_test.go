package cri_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest"
)

// TestDeadlines checks how long each call waits for a runtime that does not respond.
func TestDeadlines(t *testing.T) {
	const T = time.Minute
	for _, test := range []struct {
		method string
		limit  time.Duration
		call   func(context.Context, *runtimetest.Runtime) error
	}{
		{"RunPodSandbox", 2 * T, func(ctx context.Context, r *runtimetest.Runtime) error {
			_, err := r.RunPodSandbox(ctx, sandboxOf("web", 0), "")
			return err
		}},
		{"StopPodSandbox", T, func(ctx context.Context, r *runtimetest.Runtime) error { return r.StopPodSandbox(ctx, "x") }},
		{"StopContainer", 31*time.Second + T, func(ctx context.Context, r *runtimetest.Runtime) error {
			return r.StopContainer(ctx, "x", 31*time.Second)
		}},
		{"ExecSync", 5*time.Second + T, func(ctx context.Context, r *runtimetest.Runtime) error {
			_, err := r.ExecSync(ctx, "x", nil, 5*time.Second, 10)
			return err
		}},
		{"ImageStatus", T, func(ctx context.Context, r *runtimetest.Runtime) error {
			_, _, err := r.ImageStatus(ctx, "x")
			return err
		}},
	} {
		t.Run(test.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := runtimetest.New(t, runtimetest.Options{Timeout: T})
				r.Inject(runtimetest.Fault{Method: test.method, Hangs: true})
				began := time.Now()
				err := test.call(t.Context(), r)
				if !errors.Is(err, runtime.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got error %v, want runtime.ErrUnavailable and context.DeadlineExceeded", err)
				}
				if took := time.Since(began); took != test.limit {
					t.Errorf("duration of the call: got %v, want %v", took, test.limit)
				}
			})
		})
	}
}

// TestPullImage_NoDeadline checks that a pull ends only if the runtime responds or the
// caller cancels it.
func TestPullImage_NoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		r.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "big:1"}, PullDuration: 24 * time.Hour})
		began := time.Now()
		ref, err := r.PullImage(t.Context(), "big:1", nil, nil)
		if err != nil || ref == "" || time.Since(began) != 24*time.Hour {
			t.Errorf("pull of 24h: got reference %q, error %v after %v; want a reference after 24h", ref, err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := r.PullImage(ctx, "big:1", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("pull with a deadline: got error %v, want DeadlineExceeded", err)
		}
		var pull *runtime.PullError
		if _, err := r.PullImage(t.Context(), "none:1", nil, nil); !errors.As(err, &pull) || pull.Status != 404 {
			t.Errorf("pull of a missing image: got error %v, want a PullError with status 404", err)
		}
		r.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "secret:1"}, Username: "ann", Password: "x"})
		if _, err := r.PullImage(t.Context(), "secret:1", nil, nil); !errors.As(err, &pull) || pull.Status != 401 {
			t.Errorf("pull without a password: got error %v, want a PullError with status 401", err)
		}
		if _, err := r.PullImage(t.Context(), "secret:1", &api.AuthConfig{Username: "ann", Password: "x"}, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestNotFound checks that stopping and removing an object that does not exist returns nil. The
// result must be nil even if the runtime returns an error, as CRI-O and old versions of containerd
// do.
func TestNotFound(t *testing.T) {
	r := runtimetest.New(t, runtimetest.Options{})
	r.Inject(runtimetest.Fault{Err: status.Error(codes.NotFound, "no such object")})
	for name, err := range map[string]error{
		"StopPodSandbox":   r.StopPodSandbox(t.Context(), "x"),
		"RemovePodSandbox": r.RemovePodSandbox(t.Context(), "x"),
		"StopContainer":    r.StopContainer(t.Context(), "x", 0),
		"RemoveContainer":  r.RemoveContainer(t.Context(), "x"),
		"RemoveImage":      r.RemoveImage(t.Context(), "x"),
	} {
		if err != nil {
			t.Errorf("%s: got error %v, want nil", name, err)
		}
	}
	if _, present, err := r.ImageStatus(t.Context(), "x"); present || err != nil {
		t.Errorf("ImageStatus: got exists %t, error %v; want false, nil", present, err)
	}
	if err := r.StartContainer(t.Context(), "x"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("StartContainer: got error %v, want ErrNotFound", err)
	}
}

// TestRedial checks that Dial succeeds without a runtime, and that a client connects again when an
// unreachable runtime is reachable again.
func TestRedial(t *testing.T) {
	c, err := cri.Dial(cri.Options{Endpoint: filepath.Join(t.TempDir(), "none.sock")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Node(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("Node without a runtime: got error %v, want %v", err, runtime.ErrUnavailable)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		c := r.Dial(t)
		r.Disconnect()
		if _, err := c.Node(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("Node after Disconnect: got error %v, want %v", err, runtime.ErrUnavailable)
		}
		r.Reconnect()
		if node, err := c.Node(t.Context()); err != nil || !node.Ready {
			t.Errorf("Node after Reconnect: got %+v, error %v; want a ready runtime", node, err)
		}
	})
}

// TestRunPodSandbox_ConnectionLost checks that a call returns an error if its connection
// breaks, although the runtime may have created the sandbox.
func TestRunPodSandbox_ConnectionLost(t *testing.T) {
	r := runtimetest.New(t, runtimetest.Options{})
	r.Inject(runtimetest.Fault{Method: "RunPodSandbox", AfterEffect: true, Nth: 1})
	if _, err := r.RunPodSandbox(t.Context(), sandboxOf("web", 0), ""); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("call whose connection breaks: got error %v, want %v", err, runtime.ErrUnavailable)
	}
	if _, err := r.RunPodSandbox(t.Context(), sandboxOf("web", 0), ""); !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("second call: got error %v, want %v, because the runtime has created the sandbox", err, runtime.ErrNameReserved)
	}
}

// TestInterruptedCreate_CRIO repeats a call that was canceled, as podd does after a restart. CRI-O does not
// respond to the second call before its deadline. CRI-O responds to the third call with the result of the
// first. The client must return this result within ten seconds.
func TestInterruptedCreate_CRIO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{CRIO: true})
		r.AddImages("app")
		if _, err := r.Node(t.Context()); err != nil {
			t.Fatal(err)
		}
		twice := func(method string, call func(context.Context) (string, error)) string {
			remove := r.Inject(runtimetest.Fault{Method: method, Nth: 1, IgnoresCancel: true, Delay: 2 * time.Second})
			defer remove()
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if id, err := call(short); err == nil {
				t.Fatalf("%s: got ID %s, want a canceled call", method, id)
			}
			began := time.Now()
			id, err := call(t.Context())
			if took := time.Since(began); err != nil || took > 10*time.Second {
				t.Errorf("%s after a canceled call: got error %v after %s; want the result within 10s", method, err, took)
			}
			return id
		}
		config := sandboxOf("web", 0)
		sandbox := twice("RunPodSandbox", func(ctx context.Context) (string, error) { return r.RunPodSandbox(ctx, config, "") })
		twice("CreateContainer", func(ctx context.Context) (string, error) {
			return r.CreateContainer(ctx, sandbox, &api.ContainerConfig{
				Metadata: &api.ContainerMetadata{Name: "app"}, Image: &api.ImageSpec{Image: "app", UserSpecifiedImage: "app"},
			}, config)
		})
		// The client must not give up a call that is slow but was not canceled before.
		r.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 1, IgnoresCancel: true, Delay: time.Minute})
		if _, err := r.RunPodSandbox(t.Context(), sandboxOf("slow", 0), ""); err != nil {
			t.Errorf("slow call: got error %v, want nil", err)
		}
	})
}

// TestListImages_Unreadable checks that the error of ListImages states the cause and the remedy if CRI-O
// cannot read one of its images. If the error of CRI-O does not name the image, the cause is stated only
// as probable.
func TestListImages_Unreadable(t *testing.T) {
	const prefix, suffix = `locating item named "manifest" for image with ID `, " (consider removing the image to resolve the issue): file does not exist"
	for text, want := range map[string]struct {
		text      string
		isDamaged bool
	}{
		prefix + `"` + strings.Repeat("c4", 32) + `"` + suffix: {"the runtime lists no images, because it cannot read one of them: " +
			prefix + "c4c4c4c4c4c4" + suffix + "; remove the damaged image or pull it again", true},
		"unexpected end of JSON input": {"the runtime lists no images, probably because a file of an image is truncated: " +
			"unexpected end of JSON input; if so, remove this image or pull it again", false},
		"layer not known": {"layer not known", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := runtimetest.New(t, runtimetest.Options{})
			r.Inject(runtimetest.Fault{Method: "ListImages", Err: status.Error(codes.Unknown, text)})
			images, err := r.ListImages(t.Context())
			if err == nil || len(images) > 0 || err.Error() != want.text {
				t.Fatalf("got %d images, error %v; want the error %q", len(images), err, want.text)
			}
			if got := errors.Is(err, runtime.ErrImageDamaged); got != want.isDamaged {
				t.Errorf("%v: got ErrImageDamaged %t, want %t", err, got, want.isDamaged)
			}
		})
	}
}
