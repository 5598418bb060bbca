package configsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/clustertest"
)

// describeSource returns the fields of a Source except ResourceVersion.
func describeSource(s Source) string {
	if s == (Source{}) {
		return "none"
	}
	return fmt.Sprintf("%s/%s/%s %s %q %s", s.Namespace, s.Name, s.Key, s.UID, s.Data, s.Err)
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"a/b", `a/b/kubelet  "" `},
		{"a/b.c/d_e", `a/b.c/d_e  "" `},
		{"", `"": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`},
		{"a", `"a": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`},
		{"a/b/c/d", `"a/b/c/d": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`},
		{"a.b/c", `"a.b/c": invalid namespace: `},
		{"/b", `"/b": invalid namespace: `},
		{"a/", `"a/": invalid name: `},
		{"a/B", `"a/B": invalid name: `},
		{"a/b/", `"a/b/": invalid key: `},
		{"a/b/..", `"a/b/..": invalid key: `},
		{"a/b c/d", `"a/b c/d": invalid name: `},
		{strings.Repeat("\n", 1000), `"` + strings.Repeat(" ", apiserver.MaxMessageBytes) + `…": must be `},
	} {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{Annotation: c.value}}}
		s := parse(n)
		if want := `//  "" annotation podd/config-source of node n1: ` + c.want; s.Err != "" && !strings.HasPrefix(describeSource(s), want) {
			t.Errorf("%q: got %q, want %q", c.value, describeSource(s), want)
		}
		if s.Err == "" && describeSource(s) != c.want {
			t.Errorf("%q: got %q, want %q", c.value, describeSource(s), c.want)
		}
	}
}

// A testFollower runs a Follower for the Node n1 against an API server. A Reflector watches the Node.
type testFollower struct {
	*clustertest.API
	t     *testing.T
	mu    sync.Mutex // guards all following fields
	calls []string   // the calls of OnChange, in the form that describeSource returns
	errs  []error    // the reported results, nil for a success
}

// runFollower starts a Follower in a synctest bubble, lets 2 s pass and calls test. annotation is the
// annotation of the Node, or "" if the Node has none. The API server contains the ConfigMap default/conf with
// the UID c1 and the data {kubelet: 1, other: 2}. prepare may be nil.
func runFollower(t *testing.T, annotation string, prepare, test func(*testFollower)) {
	synctest.Test(t, func(t *testing.T) {
		c := &testFollower{API: &clustertest.API{Version: 1}, t: t}
		c.PutNode(&v1.Node{}, "ADDED")
		c.AnnotateNode(Annotation, annotation)
		c.PutObject("configmaps", clustertest.NewConfigMap("c1", "kubelet", "1", "other", "2"), "ADDED")
		if prepare != nil {
			prepare(c)
		}
		client := clustertest.NewClient(t, c.API, apiserver.Options{QPS: 50, Burst: 100})
		var nodes apiserver.Store[*v1.Node]
		reflector := apiserver.Reflector[*v1.Node]{
			Client: client, Query: client.NodeQuery("n1"), EmptyList: &v1.NodeList{}, Publish: nodes.Set, Report: func(context.Context, error) {},
		}
		f := &Follower{NodeName: "n1", Nodes: &nodes, OnChange: func(s Source) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.calls = append(c.calls, describeSource(s))
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { reflector.Run(ctx) })
		parts.Go(func() {
			f.Run(ctx, client, func(ctx context.Context, err error) {
				c.mu.Lock()
				defer c.mu.Unlock()
				if ctx.Err() == nil {
					c.errs = append(c.errs, err)
				}
			})
		})
		clustertest.Advance(2 * time.Second)
		test(c)
		cancel()
		parts.Wait()
	})
}

// takeErrors returns the results that were reported since the last call.
func (c *testFollower) takeErrors() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := c.errs
	c.errs = nil
	return errs
}

// checkCalls checks the calls of OnChange since the last check. Each call must begin with the
// corresponding string in want.
func (c *testFollower) checkCalls(when string, want ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.EqualFunc(c.calls, want, strings.HasPrefix) {
		c.t.Errorf("%s: got calls %q, want %q", when, c.calls, want)
	}
	c.calls = nil
}

// missing is the description of a Source for a ConfigMap that does not exist.
const missing = `default/conf/kubelet  "" ConfigMap default/conf does not exist`

// TestFollower checks that podd reports each change of the annotation and of the ConfigMap once.
func TestFollower(t *testing.T) {
	runFollower(t, "default/conf", nil, func(c *testFollower) {
		first, second := `default/conf/kubelet c1 "1" `, `default/conf/kubelet c1 "2" `
		c.checkCalls("at the start", first)
		c.Change(func() { c.PutNode(c.Node.DeepCopy(), "MODIFIED") })
		clustertest.Advance(time.Hour)
		c.checkCalls("without a change")
		c.Change(func() {
			c.PutObject("configmaps", clustertest.NewConfigMap("c1", "kubelet", "2", "other", "2"), "MODIFIED")
		})
		c.checkCalls("after a change of the content", second)
		c.Change(func() {
			c.InterruptWatches()
			c.PutObject("configmaps", clustertest.NewConfigMap("c1", "kubelet", "1"), "MODIFIED")
		})
		clustertest.Advance(apiserver.MaxUncachedWait)
		c.checkCalls("after a change between two watches", first)
		c.Change(func() { c.PutObject("configmaps", clustertest.NewConfigMap("c1"), "DELETED") })
		clustertest.Advance(time.Hour)
		c.checkCalls("after the deletion of the ConfigMap", missing)
		c.Change(func() { c.PutObject("configmaps", clustertest.NewConfigMap("c2", "kubelet", "1"), "ADDED") })
		c.checkCalls("after the ConfigMap was created again", `default/conf/kubelet c2 "1" `)
		c.Change(func() { c.PutObject("configmaps", clustertest.NewConfigMap("c2", "other", "1"), "MODIFIED") })
		c.checkCalls("after the key was removed", `default/conf/kubelet c2 "" ConfigMap default/conf has no key "kubelet"`)
		c.Change(func() { c.PutObject("configmaps", clustertest.NewConfigMap("c2", "kubelet", ""), "MODIFIED") })
		c.checkCalls("after the key was added with an empty value", `default/conf/kubelet c2 "" `)
		c.Change(func() {
			c.PutObject("configmaps", clustertest.NewConfigMap("c2", "kubelet", strings.Repeat("a", MaxSize+1)), "MODIFIED")
		})
		c.checkCalls("after the value became too long", `default/conf/kubelet c2 "" key "kubelet" of ConfigMap default/conf is 1048577 bytes long; must be at most 1048576`)
		c.Change(func() { c.AnnotateNode(Annotation, "") })
		c.checkCalls("after the annotation was removed", "none")
		c.CountRequests()
		clustertest.Advance(2 * time.Hour)
		if n := c.CountRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("without the annotation: got %d lists and %d watches in two hours, want none", n[0], n[1])
		}
	})
}

// TestFollower_Annotation checks changes of the annotation. podd must watch only the ConfigMap that
// the annotation names.
func TestFollower_Annotation(t *testing.T) {
	runFollower(t, "", nil, func(c *testFollower) {
		c.checkCalls("at the start without the annotation", "none")
		c.Change(func() { c.AnnotateNode(Annotation, "default/conf") })
		c.checkCalls("after the annotation was set", `default/conf/kubelet c1 "1" `)
		c.Change(func() { c.AnnotateNode(Annotation, "default/conf/other") })
		c.checkCalls("after the key was changed", `default/conf/other c1 "2" `)
		c.Change(func() { c.AnnotateNode(Annotation, "default/conf/missing") })
		c.checkCalls("after the key was changed to a missing one", `default/conf/missing c1 "" ConfigMap default/conf has no key "missing"`)
		c.Change(func() { c.AnnotateNode(Annotation, "team/conf") })
		c.checkCalls("after the ConfigMap was changed to a missing one", `team/conf/kubelet  "" ConfigMap team/conf does not exist`)
		c.Change(func() { c.AnnotateNode(Annotation, "conf") })
		c.checkCalls("after the annotation became invalid", `//  "" annotation podd/config-source of node n1: "conf": must be NAMESPACE/NAME or NAMESPACE/NAME/KEY`)
		c.Change(func() { c.AnnotateNode(Annotation, "default/conf") })
		c.checkCalls("after the annotation became valid", `default/conf/kubelet c1 "1" `)
		c.CountRequests()
		clustertest.Advance(apiserver.ObjectWatchTimeout * 2)
		if n := c.CountRequests("GET configmaps", "WATCH configmaps"); n[0] > 0 || n[1] < 1 || n[1] > 2 {
			t.Errorf("in the following hour: got %d lists and %d watches, want no lists, and one or two watches", n[0], n[1])
		}
		c.Change(func() { c.PutNode(c.Node, "DELETED") })
		clustertest.Advance(time.Minute)
		c.Change(func() { c.PutObject("configmaps", clustertest.NewConfigMap("c1", "kubelet", "3"), "MODIFIED") })
		c.checkCalls("after the deletion of the Node and a change of the ConfigMap", `default/conf/kubelet c1 "3" `)
	})
}

// TestFollower_New checks that podd reports a Node without the annotation after the Node was
// created, and not before the API server has responded.
func TestFollower_New(t *testing.T) {
	unreachable := func(c *testFollower) {
		c.Node = nil
		c.Fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	}
	runFollower(t, "default/conf", unreachable, func(c *testFollower) {
		clustertest.Advance(time.Minute)
		c.checkCalls("while the API server is unreachable")
		c.Change(func() { c.Fault = nil; c.PutNode(&v1.Node{}, "ADDED") })
		clustertest.Advance(backoff.MaxWait)
		c.checkCalls("after the creation of the Node", "none")
	})
}

// TestFollower_Outage checks that an outage changes nothing, and that podd reports a problem if the
// API server returns an error for the ConfigMap only.
func TestFollower_Outage(t *testing.T) {
	runFollower(t, "default/conf", nil, func(c *testFollower) {
		c.checkCalls("at the start", `default/conf/kubelet c1 "1" `)
		c.Change(func() {
			c.Fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
			c.InterruptWatches()
		})
		clustertest.Advance(10 * time.Minute)
		c.checkCalls("during an outage")
		c.Change(func() { c.Fault = nil })
		clustertest.Advance(2 * backoff.MaxWait)
		c.checkCalls("after the outage")
		c.takeErrors()
		c.Change(func() {
			c.Fault = failConfigMaps(apierrors.NewInternalError(syscall.EIO), "GET", "WATCH")
			c.InterruptWatches()
		})
		clustertest.Advance(10 * time.Minute)
		c.checkCalls("while the API server returns an error")
		if errs := c.takeErrors(); len(errs) == 0 || !apierrors.IsInternalError(errs[len(errs)-1]) {
			t.Errorf("while the API server returns an error: got reported errors %v, want errors with status 500", errs)
		}
		c.Change(func() { c.AnnotateNode(Annotation, "") })
		c.checkCalls("after the annotation was removed", "none")
		if errs := c.takeErrors(); len(errs) != 1 || errs[0] != nil {
			t.Errorf("after the annotation was removed: got reported errors %v, want one nil, because no problem is left", errs)
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

// TestFollower_Forbidden checks that podd reports forbidden requests once, with the remedy, but
// neither as a problem of the connection nor if they are forbidden only for a moment.
func TestFollower_Forbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "conf", fmt.Errorf("no relationship found"))
	prepare := func(c *testFollower) { c.Fault = failConfigMaps(forbidden, "GET", "WATCH") }
	runFollower(t, "default/conf", prepare, func(c *testFollower) {
		const denied = `default/conf/kubelet  "" reading ConfigMap default/conf: configmaps "conf" is forbidden: no relationship found; ` +
			"add a Role and a RoleBinding to namespace default that allow user system:node:n1 to get, list and watch this ConfigMap"
		const retryTime = 2 * apiserver.MaxUncachedWait // long enough for a retry and a watch that counts as successful
		const allowed = `default/conf/kubelet c1 "1" `
		c.checkCalls("within 2s after the start")
		clustertest.Advance(10 * time.Minute)
		c.checkCalls("while lists are forbidden", denied)
		c.Change(func() { c.Fault = nil })
		clustertest.Advance(retryTime)
		c.checkCalls("after a Role was created", allowed)
		c.Change(func() { c.Fault = failConfigMaps(forbidden, "GET", "WATCH"); c.InterruptWatches() })
		clustertest.Advance(2 * time.Second)
		c.Change(func() { c.Fault = nil })
		clustertest.Advance(retryTime)
		c.checkCalls("after the API server was restarted")
		c.Change(func() { c.Fault = failConfigMaps(forbidden, "WATCH"); c.InterruptWatches() })
		clustertest.Advance(10 * time.Minute)
		c.checkCalls("while only watches are forbidden", denied)
		c.Change(func() { c.Fault = nil })
		clustertest.Advance(retryTime)
		c.checkCalls("after watches were allowed", allowed)
		if err := errors.Join(c.takeErrors()...); err != nil {
			t.Errorf("got reported errors %v, want none", err)
		}
	})
}
