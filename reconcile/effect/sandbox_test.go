package effect

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime"
)

// slowSandboxes is a runtime in which RunPodSandbox takes two seconds.
type slowSandboxes struct {
	Runtime
	err error
}

func (r slowSandboxes) RunPodSandbox(context.Context, *cri.PodSandboxConfig, string) (string, error) {
	time.Sleep(2 * time.Second)
	return "s1", r.err
}

func (slowSandboxes) PodSandboxStatus(context.Context, string) (runtime.Sandbox, error) {
	time.Sleep(time.Second)
	return runtime.Sandbox{}, nil
}

// TestRunPodSandbox_Call checks that the duration of the call excludes the wait for a slot of the Gate and the
// query of the new sandbox, because it shows whether the runtime is slow.
func TestRunPodSandbox_Call(t *testing.T) {
	for name, callErr := range map[string]error{"succeeds": nil, "fails": errors.New("no network")} {
		inBubble(t, name, func(t *testing.T) {
			e := &Runner{Runtime: slowSandboxes{err: callErr}, Gate: NewGate(1)}
			release, err := e.Gate.acquire(t.Context(), sandboxRank)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(5*time.Second, func() { release(nil) })
			s := Input{Desired: &manifest.Pod{Object: &v1.Pod{}}, Node: &render.Node{}}
			_, call, err := e.runPodSandbox(t.Context(), s, &cri.PodSandboxConfig{})
			if !errors.Is(err, callErr) || call == nil || call.Took != 2*time.Second || !errors.Is(call.Err, callErr) {
				t.Errorf("got call %+v and error %v, want a call of 2s with error %v", call, err, callErr)
			}
		})
	}
	inBubble(t, "no slot", func(t *testing.T) {
		e := &Runner{Runtime: slowSandboxes{}, Gate: NewGate(1)}
		release, err := e.Gate.acquire(t.Context(), sandboxRank)
		if err != nil {
			t.Fatal(err)
		}
		defer release(nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, call, err := e.runPodSandbox(ctx, Input{}, nil); call != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("got call %+v and error %v, want no call and a canceled context", call, err)
		}
		synctest.Wait()
	})
}
