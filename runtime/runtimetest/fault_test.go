package runtimetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/runtimetest"
)

func config(name string) *api.PodSandboxConfig {
	return &api.PodSandboxConfig{Metadata: &api.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "u"}}
}

// inBubble runs a test with an empty runtime.
func inBubble(t *testing.T, test func(t *testing.T, r *runtimetest.Runtime)) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{Timeout: time.Minute})
		r.AddImages("app")
		test(t, r)
	})
}

// countSandboxes returns how many of the sandboxes a, b and c exist. It tries to create each sandbox and
// counts the failed calls, because a call fails if the name is reserved.
func countSandboxes(t *testing.T, r *runtimetest.Runtime) int {
	t.Helper()
	n := 0
	for _, name := range []string{"a", "b", "c"} {
		_, err := r.RunPodSandbox(t.Context(), config(name), "")
		if errors.Is(err, runtime.ErrNameReserved) {
			n++
		}
	}
	return n
}

func TestFault_BeforeCall(t *testing.T) {
	inBubble(t, func(t *testing.T, r *runtimetest.Runtime) {
		r.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 2, Err: errors.New("boom")})
		for i, name := range []string{"a", "b", "c"} {
			_, err := r.RunPodSandbox(t.Context(), config(name), "")
			if failed := err != nil; failed != (i == 1) {
				t.Errorf("sandbox %s: got error %v, want one only for the second call", name, err)
			}
		}
		if n := countSandboxes(t, r); n != 2 {
			t.Errorf("got %d sandboxes, want 2, because the second call failed before it had an effect", n)
		}
	})
}

func TestFault_AfterCall(t *testing.T) {
	inBubble(t, func(t *testing.T, r *runtimetest.Runtime) {
		applied := false
		remove := r.Inject(runtimetest.Fault{Method: "RunPodSandbox", AfterEffect: true, OnApply: func() { applied = true }, Err: errors.New("boom")})
		if _, err := r.RunPodSandbox(t.Context(), config("a"), ""); err == nil || !applied {
			t.Errorf("got error %v and OnApply called: %t; want an error and OnApply called: true", err, applied)
		}
		remove()
		if n := countSandboxes(t, r); n != 1 {
			t.Errorf("got %d sandboxes, want 1, because the fault occurs after the call", n)
		}
	})
}

func TestFault_Hang(t *testing.T) {
	inBubble(t, func(t *testing.T, r *runtimetest.Runtime) {
		r.Inject(runtimetest.Fault{Method: "StopPodSandbox", Hangs: true})
		began := time.Now()
		if err := r.StopPodSandbox(t.Context(), "x"); !errors.Is(err, runtime.ErrUnavailable) || time.Since(began) != time.Minute {
			t.Errorf("hanging call: got error %v after %v; want ErrUnavailable after 1m, the timeout", err, time.Since(began))
		}
		time.AfterFunc(time.Second, r.Disconnect)
		began = time.Now()
		if err := r.StopPodSandbox(t.Context(), "x"); !errors.Is(err, runtime.ErrUnavailable) || time.Since(began) != time.Second {
			t.Errorf("hanging call with Disconnect after 1s: got error %v after %v; want ErrUnavailable after 1s", err, time.Since(began))
		}
	})
}

// TestFault_IgnoresCancel checks that a call that its client has canceled still reserves its
// name, is not listed, and takes effect after the delay.
func TestFault_IgnoresCancel(t *testing.T) {
	inBubble(t, func(t *testing.T, r *runtimetest.Runtime) {
		remove := r.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 1, IgnoresCancel: true, Delay: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.RunPodSandbox(ctx, config("a"), ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("canceled call: got error %v, want %v", err, context.DeadlineExceeded)
		}
		remove()
		if _, err := r.RunPodSandbox(t.Context(), config("a"), ""); !errors.Is(err, runtime.ErrNameReserved) {
			t.Errorf("call with the same name during the delay: got error %v, want %v", err, runtime.ErrNameReserved)
		}
		if n := r.Sandboxes(); len(n) != 0 {
			t.Errorf("during the delay: got sandboxes %v, want none", n)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if got := r.Sandboxes(); !slices.Equal(got, []string{"default/a 0 ready"}) {
			t.Errorf("after the delay: got %q, want one ready sandbox", got)
		}
	})
}

func TestCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, r *runtimetest.Runtime) {
		id, err := r.RunPodSandbox(t.Context(), config("web"), "")
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.CreateContainer(t.Context(), id, &api.ContainerConfig{
			Metadata: &api.ContainerMetadata{Name: "app"}, Image: &api.ImageSpec{Image: "app"},
		}, config("web"))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			r.StartContainer(t.Context(), c), r.StopContainer(t.Context(), c, time.Second), r.RemoveContainer(t.Context(), c),
			r.StopPodSandbox(t.Context(), id), r.RemovePodSandbox(t.Context(), id),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		want := []string{
			"RunPodSandbox default/web", "CreateContainer default/web/app", "StartContainer default/web/app",
			"StopContainer default/web/app", "RemoveContainer default/web/app", "StopPodSandbox default/web", "RemovePodSandbox default/web",
		}
		if got := r.Effects(); !slices.Equal(got, want) {
			t.Errorf("calls with an effect: got\n%q\nwant\n%q", got, want)
		}
	})
}
