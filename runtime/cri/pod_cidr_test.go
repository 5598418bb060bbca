package cri_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
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

// TestNodeObserver_PodCIDR checks when the observer sends the pod CIDR to the runtime: when it is first set,
// after a change, after the runtime was unreachable, and again after an error.
func TestNodeObserver_PodCIDR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		var log strings.Builder
		var cidr atomic.Value
		setCIDR := func(to string) string { cidr.Store(to); return to }
		setCIDR("")
		n := r.NewNodeObserver(cri.NodeObserverOptions{
			PodCIDR: func() string { return cidr.Load().(string) }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- n.Run(ctx, func(runtime.Node) {}) }()
		want := func(when string, after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			var got []string
			for _, c := range r.Calls("UpdateRuntimeConfig") {
				got = append(got, c.Request.(*api.UpdateRuntimeConfigRequest).GetRuntimeConfig().GetNetworkConfig().GetPodCidr())
			}
			if r.ForgetCalls(); !slices.Equal(got, want) {
				t.Errorf("%s: got UpdateRuntimeConfig with the CIDRs %q, want %q", when, got, want)
			}
		}
		want("without a CIDR", time.Minute)
		setCIDR("10.0.0.0/24")
		want("with a CIDR", time.Minute, "10.0.0.0/24")
		both := setCIDR("10.0.0.0/24,fd00::/64")
		want("after a change", time.Minute, both)
		setCIDR("")
		want("after the CIDR was unset", time.Minute)
		setCIDR(both)
		r.Disconnect()
		want("while the runtime is unreachable", time.Minute)
		r.Reconnect()
		want("when the runtime is reachable again", time.Minute, both)
		heal := r.Inject(runtimetest.Fault{Method: "UpdateRuntimeConfig", Err: status.Error(codes.Unknown, "no space left on device")})
		other := setCIDR("10.0.1.0/24")
		want("while the runtime rejects it", 9*time.Second, other, other)
		heal()
		want("after the error", time.Minute, other)
		cancel()
		<-done
		if got := log.String(); strings.Count(got, "failed; trying again") != 1 || strings.Count(got, "pod CIDR sent to the runtime") != 3 {
			t.Errorf("got log %s, want one message for the error and 3 messages \"pod CIDR sent to the runtime\"", got)
		}
	})
}

// TestUpdatePodCIDR_Unimplemented checks that a runtime without UpdateRuntimeConfig causes no error.
func TestUpdatePodCIDR_Unimplemented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		r.Inject(runtimetest.Fault{Method: "UpdateRuntimeConfig", Err: status.Error(codes.Unimplemented, "unknown method")})
		if err := r.UpdatePodCIDR(t.Context(), "10.0.0.0/24"); err != nil {
			t.Error(err)
		}
		r.Disconnect()
		if err := r.UpdatePodCIDR(t.Context(), "10.0.0.0/24"); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("UpdatePodCIDR at an unreachable runtime: got error %v, want %v", err, runtime.ErrUnavailable)
		}
	})
}

// TestNodeObserver_PodCIDRHangs checks that a runtime that does not respond to UpdateRuntimeConfig
// does not delay the first Node.
func TestNodeObserver_PodCIDRHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		r.Inject(runtimetest.Fault{Method: "UpdateRuntimeConfig", Hangs: true})
		n := r.NewNodeObserver(cri.NodeObserverOptions{PodCIDR: func() string { return "10.0.0.0/24" }, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		began, emitted, done := time.Now(), make(chan time.Duration, 9), make(chan error)
		go func() { done <- n.Run(ctx, func(runtime.Node) { emitted <- time.Since(began) }) }()
		if got := <-emitted; got > time.Second {
			t.Errorf("time until the first Node: got %v, want at most 1s", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(r.Calls("UpdateRuntimeConfig")); got < 3 {
			t.Errorf("calls of UpdateRuntimeConfig in a minute: got %d, want 3 or more", got)
		}
		cancel()
		<-done
	})
}
