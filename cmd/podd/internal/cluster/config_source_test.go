package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/configsource"
)

// A configNode is a testNode that records the calls of OnConfigSource.
type configNode struct {
	*testNode
	mu    sync.Mutex // guards all following fields
	calls []string   // in the form that describe returns
	// lastVersion is the ResourceVersion in the last call.
	lastVersion string
}

// describe returns the fields of a configsource.Source except ResourceVersion.
func describe(s configsource.Source) string {
	if s == (configsource.Source{}) {
		return "none"
	}
	return fmt.Sprintf("%s/%s/%s %s %q %s", s.Namespace, s.Name, s.Key, s.UID, s.Data, s.Err)
}

// runConfigNode starts a node and calls test. annotation is the annotation of the Node, or "" if the Node
// has none. The API server contains the ConfigMap default/conf with the UID c1 and the data {kubelet: 1,
// other: 2}. prepare may be nil.
func runConfigNode(t *testing.T, annotation string, prepare func(*configNode, *Options), test func(*configNode)) {
	c := &configNode{}
	runNode(t, func(l *testNode, o *Options) {
		c.testNode = l
		l.PutNode(&v1.Node{}, "ADDED")
		c.AnnotateNode(configsource.Annotation, annotation)
		l.PutObject("configmaps", clustertest.NewConfigMap("c1", "kubelet", "1", "other", "2"), "ADDED")
		o.OnConfigSource = func(s configsource.Source) {
			c.mu.Lock()
			c.calls, c.lastVersion = append(c.calls, describe(s)), s.ResourceVersion
			c.mu.Unlock()
		}
		if prepare != nil {
			prepare(c, o)
		}
	}, func(*testNode) { test(c) })
}

// checkCalls checks the calls of OnConfigSource since the last check. Each call must begin with the
// corresponding string in want.
func (c *configNode) checkCalls(when string, want ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.EqualFunc(c.calls, want, strings.HasPrefix) {
		c.t.Errorf("%s: got calls %q, want %q", when, c.calls, want)
	}
	c.calls = nil
}

// TestConfigSource_NotUsed checks that podd sends no request for the ConfigMap without OnConfigSource.
func TestConfigSource_NotUsed(t *testing.T) {
	runConfigNode(t, "default/conf", func(_ *configNode, o *Options) { o.OnConfigSource = nil }, func(c *configNode) {
		clustertest.Advance(time.Hour)
		if n := c.CountRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("got %d lists and %d watches, want none", n[0], n[1])
		}
	})
}

// TestConfigSource_Reconnect checks a new kubeconfig that names another API server. podd must report only
// what differs, and nothing from the previous API server after the change.
func TestConfigSource_Reconnect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	valid := strings.Replace(clustertest.Kubeconfig, ", certificate-authority: ca.crt", "", 1)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(valid)
	runConfigNode(t, "default/conf", func(_ *configNode, o *Options) { o.Credential.Kubeconfig = file }, func(c *configNode) {
		c.checkCalls("at the start", `default/conf/kubelet c1 "1" `)
		write(valid + "# changed\n")
		clustertest.Advance(15 * time.Second)
		c.Change(func() { c.PutObject("configmaps", clustertest.NewConfigMap("c1", "kubelet", "2"), "MODIFIED") })
		c.checkCalls("after the end of the connection")

		ctx, cancel := context.WithCancel(c.t.Context())
		other := &configNode{testNode: &testNode{API: &clustertest.API{Version: 100, Service: "s1"}, t: t}}
		other.PutNode(&v1.Node{}, "ADDED")
		other.AnnotateNode(configsource.Annotation, "default/conf")
		other.PutObject("configmaps", clustertest.NewConfigMap("c1", "kubelet", "1"), "ADDED")
		same := other.Objects["configmaps/default/conf"]
		same.SetResourceVersion(c.lastVersion)
		other.Fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
		done := c.connect(ctx, other.API)
		clustertest.Advance(time.Minute)
		c.checkCalls("while the next API server is unreachable")
		if c.cluster.Reachable() {
			t.Error("while the next API server is unreachable: got reachable, want not reachable")
		}
		other.Change(func() { other.Fault = nil })
		clustertest.Advance(backoff.MaxWait)
		c.checkCalls("after the next connection found the same content")
		other.Change(func() { other.AnnotateNode(configsource.Annotation, "") })
		c.checkCalls("after the annotation was removed", "none")
		cancel()
		<-done
		other.Change(other.InterruptWatches)
	})
}
