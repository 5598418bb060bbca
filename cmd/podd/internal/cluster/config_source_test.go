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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
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
		l.putNode(&v1.Node{}, "ADDED")
		c.annotate(annotation)
		l.putObject("configmaps", configMapOf("c1", "kubelet", "1", "other", "2"), "ADDED")
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

// configMapOf returns the ConfigMap default/conf. data contains keys and values alternately.
func configMapOf(uid types.UID, data ...string) *v1.ConfigMap {
	m := &v1.ConfigMap{ObjectMeta: metaOf("conf"), Data: map[string]string{}}
	m.UID = uid
	for i := 0; i < len(data); i += 2 {
		m.Data[data[i]] = data[i+1]
	}
	return m
}

// annotate sets the annotation of the Node, or removes it if value is "". The caller must hold mu of the
// fakeAPI unless the node has not started yet.
func (c *configNode) annotate(value string) {
	n := c.node.DeepCopy()
	if metav1.SetMetaDataAnnotation(&n.ObjectMeta, configsource.Annotation, value); value == "" {
		delete(n.Annotations, configsource.Annotation)
	}
	c.putNode(n, "MODIFIED")
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

// missing is the description of a configsource.Source for a ConfigMap that does not exist.
const missing = `default/conf/kubelet  "" ConfigMap default/conf does not exist`

// TestConfigSource checks that podd reports each change of the annotation and of the ConfigMap once.
func TestConfigSource(t *testing.T) {
	runConfigNode(t, "default/conf", nil, func(c *configNode) {
		first, second := `default/conf/kubelet c1 "1" `, `default/conf/kubelet c1 "2" `
		c.checkCalls("at the start", first)
		c.change(func() { c.putNode(c.node.DeepCopy(), "MODIFIED") })
		c.advance(time.Hour)
		c.checkCalls("without a change")
		c.change(func() { c.putObject("configmaps", configMapOf("c1", "kubelet", "2", "other", "2"), "MODIFIED") })
		c.checkCalls("after a change of the content", second)
		c.change(func() { c.interruptWatches(); c.putObject("configmaps", configMapOf("c1", "kubelet", "1"), "MODIFIED") })
		c.advance(apiserver.MaxUncachedWait)
		c.checkCalls("after a change between two watches", first)
		c.change(func() { c.putObject("configmaps", configMapOf("c1"), "DELETED") })
		c.advance(time.Hour)
		c.checkCalls("after the deletion of the ConfigMap", missing)
		c.change(func() { c.putObject("configmaps", configMapOf("c2", "kubelet", "1"), "ADDED") })
		c.checkCalls("after the ConfigMap was created again", `default/conf/kubelet c2 "1" `)
		c.change(func() { c.putObject("configmaps", configMapOf("c2", "other", "1"), "MODIFIED") })
		c.checkCalls("after the key was removed", `default/conf/kubelet c2 "" ConfigMap default/conf has no key "kubelet"`)
		c.change(func() { c.putObject("configmaps", configMapOf("c2", "kubelet", ""), "MODIFIED") })
		c.checkCalls("after the key was added with an empty value", `default/conf/kubelet c2 "" `)
		c.change(func() {
			c.putObject("configmaps", configMapOf("c2", "kubelet", strings.Repeat("a", configsource.MaxSize+1)), "MODIFIED")
		})
		c.checkCalls("after the value became too long", `default/conf/kubelet c2 "" key "kubelet" of ConfigMap default/conf is 1048577 bytes long; must be at most 1048576`)
		c.change(func() { c.annotate("") })
		c.checkCalls("after the annotation was removed", "none")
		c.countRequests()
		c.advance(2 * time.Hour)
		if n := c.countRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("without the annotation: got %d lists and %d watches in two hours, want none", n[0], n[1])
		}
	})
}

// TestConfigSource_Annotation checks changes of the annotation. podd must watch only the ConfigMap that
// the annotation names.
func TestConfigSource_Annotation(t *testing.T) {
	runConfigNode(t, "", nil, func(c *configNode) {
		c.checkCalls("at the start without the annotation", "none")
		c.change(func() { c.annotate("default/conf") })
		c.checkCalls("after the annotation was set", `default/conf/kubelet c1 "1" `)
		c.change(func() { c.annotate("default/conf/other") })
		c.checkCalls("after the key was changed", `default/conf/other c1 "2" `)
		c.change(func() { c.annotate("default/conf/missing") })
		c.checkCalls("after the key was changed to a missing one", `default/conf/missing c1 "" ConfigMap default/conf has no key "missing"`)
		c.change(func() { c.annotate("team/conf") })
		c.checkCalls("after the ConfigMap was changed to a missing one", `team/conf/kubelet  "" ConfigMap team/conf does not exist`)
		c.change(func() { c.annotate("conf") })
		c.checkCalls("after the annotation became invalid", `//  "" annotation podd/config-source of node n1: "conf": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`)
		c.change(func() { c.annotate("default/conf") })
		c.checkCalls("after the annotation became valid", `default/conf/kubelet c1 "1" `)
		c.countRequests()
		c.advance(apiserver.ObjectWatchTimeout * 2)
		if n := c.countRequests("GET configmaps", "WATCH configmaps"); n[0] > 0 || n[1] < 1 || n[1] > 2 {
			t.Errorf("in the following hour: got %d lists and %d watches, want no lists, and one or two watches", n[0], n[1])
		}
		c.change(func() { c.putNode(c.node, "DELETED") })
		c.advance(time.Minute)
		c.change(func() { c.putObject("configmaps", configMapOf("c1", "kubelet", "3"), "MODIFIED") })
		c.checkCalls("after the deletion of the Node and a change of the ConfigMap", `default/conf/kubelet c1 "3" `)
	})
}

// TestConfigSource_New checks that podd reports a Node without the annotation after podd has created the
// Node, and not before the API server has responded.
func TestConfigSource_New(t *testing.T) {
	unreachable := func(c *configNode, _ *Options) {
		c.node = nil
		c.fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	}
	runConfigNode(t, "default/conf", unreachable, func(c *configNode) {
		c.advance(time.Minute)
		c.checkCalls("while the API server is unreachable")
		c.change(func() { c.fault = nil })
		c.advance(backoff.MaxWait)
		c.checkCalls("after podd has created the Node", "none")
	})
}

// TestConfigSource_NotUsed checks that podd sends no request for the ConfigMap without OnConfigSource.
func TestConfigSource_NotUsed(t *testing.T) {
	runConfigNode(t, "default/conf", func(_ *configNode, o *Options) { o.OnConfigSource = nil }, func(c *configNode) {
		c.advance(time.Hour)
		if n := c.countRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("got %d lists and %d watches, want none", n[0], n[1])
		}
	})
}

// TestConfigSource_Outage checks that an outage changes nothing, and that podd reports a problem if the
// API server returns an error for the ConfigMap only.
func TestConfigSource_Outage(t *testing.T) {
	runConfigNode(t, "default/conf", nil, func(c *configNode) {
		c.checkCalls("at the start", `default/conf/kubelet c1 "1" `)
		c.change(func() {
			c.fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
			c.interruptWatches()
		})
		c.advance(10 * time.Minute)
		c.checkCalls("during an outage")
		c.change(func() { c.fault = nil })
		c.advance(2 * backoff.MaxWait)
		c.checkCalls("after the outage")
		c.takeProblems()
		c.change(func() {
			c.fault = failConfigMaps(apierrors.NewInternalError(syscall.EIO), "GET", "WATCH")
			c.interruptWatches()
		})
		c.advance(10 * time.Minute)
		c.checkCalls("while the API server returns an error")
		if problems := c.takeProblems(); len(problems) != 1 || !strings.Contains(problems[0], "returned status 500") {
			t.Errorf("while the API server returns an error: got problems %q, want one that contains \"returned status 500\"", problems)
		}
		c.change(func() { c.annotate("") })
		c.checkCalls("after the annotation was removed", "none")
		if problems := c.takeProblems(); len(problems) != 1 || problems[0] != "" {
			t.Errorf("after the annotation was removed: got problems %q, want [\"\"], because no problem is left", problems)
		}
	})
}

// failConfigMaps returns a fault that returns err for requests for ConfigMaps with one of the verbs, of
// which WATCH is one.
func failConfigMaps(err *apierrors.StatusError, verbs ...string) func(*http.Request) (*http.Response, error) {
	return func(q *http.Request) (*http.Response, error) {
		verb := q.Method
		if q.URL.Query().Get("watch") != "" {
			verb = "WATCH"
		}
		if strings.HasSuffix(q.URL.Path, "/configmaps") && slices.Contains(verbs, verb) {
			return clustertest.ErrorResponse(err), nil
		}
		return nil, nil
	}
}

// TestConfigSource_Forbidden checks that podd reports forbidden requests once, with the remedy, but
// neither as a problem of the connection nor if they are forbidden only for a moment.
func TestConfigSource_Forbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "conf", fmt.Errorf("no relationship found"))
	prepare := func(c *configNode, _ *Options) { c.fault = failConfigMaps(forbidden, "GET", "WATCH") }
	runConfigNode(t, "default/conf", prepare, func(c *configNode) {
		const denied = `default/conf/kubelet  "" reading ConfigMap default/conf: configmaps "conf" is forbidden: no relationship found; ` +
			"add a Role and a RoleBinding to namespace default that allow user system:node:n1 to get, list and watch this ConfigMap"
		const retryTime = 2 * apiserver.MaxUncachedWait // long enough for a retry and a watch that counts as successful
		const allowed = `default/conf/kubelet c1 "1" `
		c.checkCalls("within 2s after the start")
		c.advance(10 * time.Minute)
		c.checkCalls("while lists are forbidden", denied)
		c.change(func() { c.fault = nil })
		c.advance(retryTime)
		c.checkCalls("after a Role was created", allowed)
		c.change(func() { c.fault = failConfigMaps(forbidden, "GET", "WATCH"); c.interruptWatches() })
		c.advance(2 * time.Second)
		c.change(func() { c.fault = nil })
		c.advance(retryTime)
		c.checkCalls("after the API server was restarted")
		c.change(func() { c.fault = failConfigMaps(forbidden, "WATCH"); c.interruptWatches() })
		c.advance(10 * time.Minute)
		c.checkCalls("while only watches are forbidden", denied)
		c.change(func() { c.fault = nil })
		c.advance(retryTime)
		c.checkCalls("after watches were allowed", allowed)
		if problems := c.takeProblems(); len(problems) > 0 {
			t.Errorf("got problems %q, want none", problems)
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
		c.advance(15 * time.Second)
		c.change(func() { c.putObject("configmaps", configMapOf("c1", "kubelet", "2"), "MODIFIED") })
		c.checkCalls("after the end of the connection")

		ctx, cancel := context.WithCancel(c.t.Context())
		other := &configNode{testNode: &testNode{fakeAPI: &fakeAPI{version: 100, service: "s1"}, t: t}}
		other.putNode(&v1.Node{}, "ADDED")
		other.annotate("default/conf")
		other.putObject("configmaps", configMapOf("c1", "kubelet", "1"), "ADDED")
		same := other.fakeAPI.objects.stored["configmaps/default/conf"]
		same.SetResourceVersion(c.lastVersion)
		other.fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
		done := c.connect(ctx, other.fakeAPI)
		c.advance(time.Minute)
		c.checkCalls("while the next API server is unreachable")
		if c.cluster.Reachable() {
			t.Error("while the next API server is unreachable: got reachable, want not reachable")
		}
		other.change(func() { other.fault = nil })
		c.advance(backoff.MaxWait)
		c.checkCalls("after the next connection found the same content")
		other.change(func() { other.annotate("") })
		c.checkCalls("after the annotation was removed", "none")
		cancel()
		<-done
		other.change(other.interruptWatches)
	})
}

// TestReachable checks that the API server is reachable if it has listed the Node and responds, even with
// errors.
func TestReachable(t *testing.T) {
	if New(Options{}).Reachable() {
		t.Error("before the first connection: got reachable, want not reachable")
	}
	unreachable := func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	slow := func(q *http.Request) (*http.Response, error) { <-q.Context().Done(); return nil, q.Context().Err() }
	failing := func(*http.Request) (*http.Response, error) {
		return clustertest.ErrorResponse(apierrors.NewInternalError(syscall.EIO)), nil
	}
	runNode(t, func(l *testNode, _ *Options) { l.fault = unreachable }, func(l *testNode) {
		for _, step := range []struct {
			name  string
			fault func(*http.Request) (*http.Response, error)
			want  bool
		}{
			{"unreachable at the start", unreachable, false},
			{"errors before the first list", failing, false},
			{"no fault", nil, true},
			{"unreachable", unreachable, false},
			{"no fault after an outage", nil, true},
			{"errors", failing, true},
			{"no response", slow, false},
			{"errors after an outage", failing, true},
		} {
			l.change(func() { l.fault = step.fault; l.interruptWatches() })
			l.advance(time.Minute)
			if got := l.cluster.Reachable(); got != step.want {
				t.Errorf("%s: got reachable %t, want %t", step.name, got, step.want)
			}
		}
	})
}
