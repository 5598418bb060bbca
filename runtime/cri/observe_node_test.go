package cri_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest"
)

// TestNodeObserver_Logs checks that the observer logs each change of the pod network's readiness once, and
// logs nothing about a restart of the runtime.
func TestNodeObserver_Logs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		r.SetNetworkFailure("cni plugin not initialized")
		var log strings.Builder
		n := r.NewNodeObserver(cri.NodeObserverOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(time.Minute, func() { r.SetNetworkFailure("") })
		time.AfterFunc(2*time.Minute, r.Restart)
		_ = n.Run(ctx, func(runtime.Node) {})
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"pod network not ready" reason="no CNI`) || !strings.Contains(got, `"pod network ready"`) {
			t.Errorf("got log %s, want one message for each of the two changes", got)
		}
	})
}

// TestNodeObserver_LogsCgroupDriver checks that the observer logs once if the runtime reports another cgroup
// driver than the configured one, also if the runtime restarts.
func TestNodeObserver_LogsCgroupDriver(t *testing.T) {
	for name, tt := range map[string]struct {
		configured string
		want       int // number of messages
	}{
		"other driver":   {"systemd", 1},
		"same driver":    {"cgroupfs", 0},
		"not configured": {"", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := runtimetest.New(t, runtimetest.Options{CgroupDriver: "cgroupfs"})
			var log strings.Builder
			n := r.NewNodeObserver(cri.NodeObserverOptions{CgroupDriver: tt.configured, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			time.AfterFunc(time.Minute, r.Restart)
			_ = n.Run(ctx, func(runtime.Node) {})
			got := log.String()
			if strings.Count(got, "\n") != tt.want || strings.Count(got, "configured=systemd inEffect=cgroupfs") != tt.want {
				t.Errorf("%s: got log %q, want %d messages about the cgroup driver", name, got, tt.want)
			}
		})
	}
}

// nodeScene runs a test with a runtime and a NodeObserver in a synctest bubble. The function nodes returns
// the Nodes that the observer has emitted since the last call.
func nodeScene(t *testing.T, o runtimetest.Options, test func(t *testing.T, r *runtimetest.Runtime, nodes func() []runtime.Node)) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, o)
		n := r.NewNodeObserver(cri.NodeObserverOptions{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		var mu sync.Mutex
		var all []runtime.Node
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			_ = n.Run(ctx, func(node runtime.Node) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, node)
			})
		})
		test(t, r, func() []runtime.Node {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			taken := all
			all = nil
			return taken
		})
		cancel()
		running.Wait()
	})
}

func TestNodeObserver(t *testing.T) {
	nodeScene(t, runtimetest.Options{Handlers: []string{"kata"}}, func(t *testing.T, r *runtimetest.Runtime, nodes func() []runtime.Node) {
		got := nodes()
		if len(got) != 1 || !got[0].Ready || !got[0].NetworkReady || got[0].CgroupDriver != "cgroupfs" || !got[0].Handlers["kata"].UserNamespaces {
			t.Fatalf("at the start: got Nodes %+v, want one ready Node with its handlers", got)
		}
		r.ForgetCalls()
		<-time.After(time.Hour)
		if got := nodes(); len(got) != 0 {
			t.Errorf("Nodes emitted in an idle hour: got %d, want none", len(got))
		}
		if n := len(r.Calls()); n < 700 || n > 730 {
			t.Errorf("calls in an idle hour: got %d, want 700 to 730, one every 5 s", n)
		}
		r.SetNetworkFailure("cni plugin not initialized")
		<-time.After(6 * time.Second)
		if got = nodes(); len(got) != 1 || got[0].NetworkReady || got[0].NetworkProblem() != "no CNI configuration in /etc/cni/net.d; install a CNI configuration; without one, only pods on the host network start" {
			t.Fatalf("without a CNI configuration: got Nodes %+v, want one whose network is not ready, with the remedy in its message", got)
		}
		r.SetNetworkFailure("")
		<-time.After(time.Second)
		if got = nodes(); len(got) != 1 || !got[0].NetworkReady || got[0].NetworkProblem() != "" {
			t.Errorf("with a CNI configuration again: got Nodes %+v, want one whose network is ready", got)
		}
		r.Disconnect()
		<-time.After(10 * time.Second)
		if got = nodes(); len(got) != 1 || got[0].Reachable || got[0].Name != "containerd" || !strings.Contains(got[0].Message, "runtimetest.sock") {
			t.Errorf("after Disconnect: got Nodes %+v, want one unreachable Node with a name and a message", got)
		}
		r.Reconnect()
		<-time.After(time.Second)
		if got = nodes(); len(got) != 1 || !got[0].Reachable || !got[0].Ready {
			t.Errorf("after Reconnect: got Nodes %+v, want one ready Node", got)
		}
	})
}

// TestNodeObserver_Hangs checks that the Node of a runtime that does not respond is not
// Reachable.
func TestNodeObserver_Hangs(t *testing.T) {
	nodeScene(t, runtimetest.Options{}, func(t *testing.T, r *runtimetest.Runtime, nodes func() []runtime.Node) {
		nodes()
		heal := r.Inject(runtimetest.Fault{Method: "Status", Hangs: true})
		<-time.After(16 * time.Second)
		if got := nodes(); len(got) != 1 || got[0].Reachable || !strings.Contains(got[0].Message, "no response") {
			t.Errorf("while Status hangs: got Nodes %+v, want one unreachable Node with \"no response\" in its message", got)
		}
		heal()
		<-time.After(11 * time.Second)
		if got := nodes(); len(got) != 1 || !got[0].Reachable {
			t.Errorf("after Status responds again: got Nodes %+v, want one reachable Node", got)
		}
	})
}

func TestNode_OldRuntime(t *testing.T) {
	for _, driver := range []string{"cgroupfs", "systemd"} {
		synctest.Test(t, func(t *testing.T) {
			r := runtimetest.New(t, runtimetest.Options{NoRuntimeConfig: true, NoEvents: true, CgroupDriver: driver, Version: "1.6.20"})
			node, err := r.Node(t.Context())
			if err != nil || node.CgroupDriver != driver || node.Version != "1.6.20" || !maps.Equal(node.Handlers, map[string]runtime.Handler{"": {}, "runc": {}}) {
				t.Errorf("got %+v, error %v; want version 1.6.20, driver %s and two handlers", node, err, driver)
			}
		})
	}
}
