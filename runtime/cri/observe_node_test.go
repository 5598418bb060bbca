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

// TestNodeObserver_Logs checks that each change of readiness is logged once.
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

// nodeScene runs a test with a runtime and a NodeObserver in a synctest bubble.
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
			t.Fatalf("got %+v, want one ready node with its handlers", got)
		}
		r.ForgetCalls()
		<-time.After(time.Hour)
		if got := nodes(); len(got) != 0 {
			t.Errorf("got %d nodes in an idle hour, want none", len(got))
		}
		if n := len(r.Calls()); n < 700 || n > 730 {
			t.Errorf("%d calls in an idle hour, want one every 5 s", n)
		}
		r.SetNetworkFailure("cni plugin not initialized")
		<-time.After(6 * time.Second)
		if got = nodes(); len(got) != 1 || got[0].NetworkReady || got[0].NetworkMessage != "no CNI configuration in /etc/cni/net.d; install a CNI configuration; without one, only pods on the host network start" {
			t.Fatalf("without network: got %+v, want one node without network and with the remedy", got)
		}
		r.SetNetworkFailure("")
		<-time.After(time.Second)
		if got = nodes(); len(got) != 1 || !got[0].NetworkReady || got[0].NetworkMessage != "" {
			t.Errorf("with the network: got %+v, want one node with network", got)
		}
		r.Disconnect()
		<-time.After(10 * time.Second)
		if got = nodes(); len(got) != 1 || got[0].Reachable || got[0].Name != "containerd" || !strings.Contains(got[0].Message, "runtimetest.sock") {
			t.Errorf("unreachable: got %+v, want one unreachable node with a name and a message", got)
		}
		r.Reconnect()
		<-time.After(time.Second)
		if got = nodes(); len(got) != 1 || !got[0].Reachable || !got[0].Ready {
			t.Errorf("reachable again: got %+v, want one ready node", got)
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
			t.Errorf("while the runtime hangs: got %+v, want one unreachable node with a message", got)
		}
		heal()
		<-time.After(11 * time.Second)
		if got := nodes(); len(got) != 1 || !got[0].Reachable {
			t.Errorf("after the runtime hung: got %+v, want one reachable node", got)
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
