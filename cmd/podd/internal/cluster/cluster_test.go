package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"podd/server"
)

// A testNode runs a Cluster against a fake API server, in the bubble of a synctest.
type testNode struct {
	*fakeAPI
	cluster  *Cluster
	t        *testing.T
	state    *server.LatestView
	mu       sync.Mutex // guards problems and rejected
	problems []string
	rejected []Rejection // the last rejections
	onClose  func()      // called when connections are closed; may be nil
}

// runNode runs a test of a node that has been running for 2 s. prepare changes the node and its
// options before the start; it may be nil.
func runNode(t *testing.T, prepare func(*testNode, *Options), test func(*testNode)) {
	synctest.Test(t, func(t *testing.T) {
		l := &testNode{fakeAPI: &fakeAPI{version: 1, service: "s1"}, t: t, state: server.NewLatestView(&server.View{Revision: 1, NodeObject: localNode()})}
		o := &Options{
			Kubeconfig: "/none", ContentType: "application/json", QPS: 50, Burst: 100, NodeName: "n1", RegisterNode: true,
			UpdateFrequency: 10 * time.Second, ReportFrequency: 5 * time.Minute, LeaseDuration: 40 * time.Second,
			Log:        slog.New(slog.DiscardHandler),
			OnProblem:  func(_ context.Context, why string) { l.mu.Lock(); l.problems = append(l.problems, why); l.mu.Unlock() },
			OnRejected: func(_ context.Context, all []Rejection) { l.mu.Lock(); l.rejected = all; l.mu.Unlock() },
		}
		if prepare != nil {
			prepare(l, o)
		}
		c := &client{host: "https://api", closeConnections: func() {
			if l.onClose != nil {
				l.onClose()
			}
		}}
		if err := c.initRESTClients(&rest.Config{Host: "http://api", Transport: l.fakeAPI, ContentConfig: rest.ContentConfig{ContentType: o.ContentType}}, o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.cluster = New(*o)
		s, done := newProblemReporter(o), make(chan struct{})
		go s.run(ctx)
		go func() { defer close(done); l.cluster.runConnection(ctx, c, l.state, s, statFile(o.Kubeconfig)) }()
		l.advance(2 * time.Second)
		test(l)
		cancel()
		<-done
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fakeAPI.mu.Lock()
		defer l.fakeAPI.mu.Unlock()
		l.interruptWatches()
	})
}

// advance lets d pass in the bubble and waits until all goroutines are blocked.
func (l *testNode) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// change calls f with mu of the fakeAPI held.
func (l *testNode) change(f func()) {
	l.fakeAPI.mu.Lock()
	f()
	l.fakeAPI.mu.Unlock()
	synctest.Wait()
}

// takeProblems returns the messages that OnProblem got since the last call.
func (l *testNode) takeProblems() (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	problems, l.problems = l.problems, nil
	return problems
}

// countRequests returns the number of requests of each kind, such as "GET nodes", since the last
// call.
func (l *testNode) countRequests(kinds ...string) (n []int) {
	l.change(func() {
		for _, kind := range kinds {
			n = append(n, len(slices.DeleteFunc(slices.Clone(l.requests), func(r string) bool { return r != kind })))
		}
		l.requests = nil
	})
	return n
}

// ready returns the status of the Ready condition in the API server, or "".
func (l *testNode) ready() v1.ConditionStatus {
	l.fakeAPI.mu.Lock()
	defer l.fakeAPI.mu.Unlock()
	if l.node == nil {
		return ""
	}
	return nodeCondition(l.t, l.node, v1.NodeReady).Status
}

// TestRun checks that a node joins the cluster and sends changes of its status at once.
func TestRun(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		if l.ready() != v1.ConditionTrue || l.lease == nil || l.lease.OwnerReferences[0].UID != l.node.UID || *l.lease.Spec.HolderIdentity != "n1" {
			t.Errorf("after 2s: got node %v, lease %v; want a ready Node and a Lease that it owns", l.node, l.lease)
		}
		if problems := l.takeProblems(); len(problems) > 0 {
			t.Errorf("got problems %q, want none", problems)
		}
		// A new View with the same Node causes no request, a changed Node does at once.
		l.countRequests()
		v := *l.state.View()
		v.Revision++
		l.state.Publish(&v)
		l.advance(time.Second)
		if n := l.countRequests("PATCH nodes"); n[0] != 0 {
			t.Errorf("same Node: got %d patches, want none", n[0])
		}
		next, down := v, localNode()
		down.Status.Conditions[1].Status = v1.ConditionFalse
		next.Revision, next.NodeObject = v.Revision+1, down
		l.state.Publish(&next)
		synctest.Wait()
		if l.ready() != v1.ConditionFalse {
			t.Errorf("after the local Node became not ready: got Ready %s in the cluster, want False at once", l.ready())
		}
	})
}

// TestRun_Addresses checks that the Node of a host without network gets an address when the host
// gets one, and that podd sends address changes at once.
func TestRun_Addresses(t *testing.T) {
	at := func(ip string) *v1.Node {
		n := localNode()
		n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}, {Type: v1.NodeHostName, Address: "n1"}}
		return n
	}
	prepare := func(l *testNode, _ *Options) {
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: at("127.0.0.1")})
	}
	runNode(t, prepare, func(l *testNode) {
		for _, step := range []struct{ ip, want string }{{"", "n1"}, {"10.0.0.5", "10.0.0.5 n1"}, {"10.0.0.6", "10.0.0.6 n1"}} {
			if v := l.state.View(); step.ip != "" {
				next := *v
				next.Revision, next.NodeObject = v.Revision+1, at(step.ip)
				l.state.Publish(&next)
				l.advance(time.Second)
			}
			var got []string
			l.change(func() {
				for _, a := range l.node.Status.Addresses {
					got = append(got, a.Address)
				}
			})
			if strings.Join(got, " ") != step.want {
				t.Errorf("with the address %q: got addresses %q, want %s", step.ip, got, step.want)
			}
		}
	})
}

// TestRun_Idle checks the number of requests of an idle node.
func TestRun_Idle(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.advance(10 * time.Minute)
		l.countRequests()
		l.advance(time.Hour)
		n := l.countRequests("PUT leases", "PATCH nodes", "WATCH nodes", "GET nodes", "GET leases", "POST nodes")
		if n[0] < 330 || n[0] > 360 || n[1] < 11 || n[1] > 13 || n[2] > 12 || n[3]+n[4]+n[5] > 0 {
			t.Errorf("got %v requests in an hour, want 330 to 360, 11 to 13, at most 12, and no others", n)
		}
	})
}

// TestRun_NoDeclaredFeatures checks an API server older than 1.35, which does not store the
// declared features. podd must not send them again and again, but must send them after an upgrade
// of the API server.
func TestRun_NoDeclaredFeatures(t *testing.T) {
	prepare := func(l *testNode, _ *Options) {
		n := localNode()
		n.Status.DeclaredFeatures = []string{"A"}
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: n})
		l.dropNodeFields = func(n *v1.Node) { n.Status.DeclaredFeatures = nil }
	}
	runNode(t, prepare, func(l *testNode) {
		l.advance(10 * time.Minute)
		l.countRequests()
		l.advance(time.Hour)
		if n := l.countRequests("PATCH nodes"); n[0] < 11 || n[0] > 20 {
			t.Errorf("got %v patches of the Node in an hour, want 11 to 20", n)
		}
		l.change(func() { l.dropNodeFields = nil; l.interruptWatches() })
		l.advance(time.Hour)
		if got := l.node.Status.DeclaredFeatures; !slices.Equal(got, []string{"A"}) {
			t.Errorf("after the upgrade: got the declared features %v, want A", got)
		}
	})
}

// TestRun_Outage checks that an outage is reported once and causes few requests, and that the
// node recovers soon after the outage.
func TestRun_Outage(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*http.Request) (*http.Response, error)
		want  string
	}{
		{"unreachable", func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }, "cannot be reached: connection refused"},
		{"slow", func(q *http.Request) (*http.Response, error) { <-q.Context().Done(); return nil, q.Context().Err() }, "within 10s"},
		{"forbidden", func(*http.Request) (*http.Response, error) {
			return errorResponse(apierrors.NewForbidden(nodesResource, "n1", nil)), nil
		}, "system:node:NAME"},
		{"unauthorized", func(*http.Request) (*http.Response, error) {
			return errorResponse(apierrors.NewUnauthorized("no")), nil
		}, "401 Unauthorized"},
		{"server error", func(*http.Request) (*http.Response, error) {
			return errorResponse(apierrors.NewInternalError(syscall.EIO)), nil
		}, "returned status 500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			runNode(t, nil, func(l *testNode) {
				l.change(func() { l.fault = c.fault; l.interruptWatches() })
				l.advance(10 * time.Minute)
				problems := l.takeProblems()
				if len(problems) != 1 || !strings.Contains(problems[0], c.want) {
					t.Errorf("got problems %q, want one with %q", problems, c.want)
				}
				if n := l.countRequests("GET nodes", "PUT leases", "PATCH nodes"); n[0]+n[1]+n[2] > 10*60 {
					t.Errorf("got %v requests in ten minutes, want at most 600", n)
				}
				// Meanwhile the node controller has set the condition to Unknown.
				l.change(func() {
					lost := l.node.DeepCopy()
					lost.Status.Conditions[1].Status = v1.ConditionUnknown
					l.putNode(lost, "MODIFIED")
					l.fault = nil
				})
				// A hanging request first has to time out.
				l.advance(5*time.Second + map[bool]time.Duration{true: requestTimeout}[c.name == "slow"])
				if l.ready() != v1.ConditionTrue {
					t.Errorf("5s after the outage: got Ready %s, want True", l.ready())
				}
				l.advance(10 * time.Second)
				if problems := l.takeProblems(); len(problems) != 1 || problems[0] != "" {
					t.Errorf("after the outage: got problems %q, want one empty message", problems)
				}
			})
		})
	}
}

// TestRun_KubeconfigChanges checks that the last valid kubeconfig stays in use until a changed
// kubeconfig is valid.
func TestRun_KubeconfigChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	valid := strings.Replace(kubeconfig, ", certificate-authority: ca.crt", "", 1)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(valid)
	runNode(t, func(_ *testNode, o *Options) { o.Kubeconfig = file }, func(l *testNode) {
		for _, invalid := range []string{"", valid[:60], kubeconfig} {
			write(invalid)
			l.advance(15 * time.Second)
			l.countRequests()
			l.advance(time.Minute)
			if n := l.countRequests("PUT leases"); n[0] < 5 {
				t.Errorf("%q: got %d renewals of the lease, want at least 5", invalid, n[0])
			}
			if problems := l.takeProblems(); len(problems) > 1 || len(problems) == 1 && !strings.Contains(problems[0], file) {
				t.Errorf("%q: got problems %q, want at most one, with the path", invalid, problems)
			}
		}
		write(valid + "# changed\n")
		l.advance(15 * time.Second)
		l.countRequests()
		l.advance(time.Minute)
		if n := l.countRequests("PUT leases"); n[0] > 0 {
			t.Errorf("1m after a valid change: got %d Lease renewals over the previous connection, want none", n[0])
		}
	})
}

// TestLeaseRenewer_Timeouts checks that connections are closed only after consecutive timeouts.
func TestLeaseRenewer_Timeouts(t *testing.T) {
	var late, closed atomic.Int32
	prepare := func(l *testNode, _ *Options) {
		l.onClose = func() { closed.Add(1) }
		l.fault = func(q *http.Request) (*http.Response, error) {
			if strings.Contains(q.URL.Path, "/leases") && late.Add(-1) >= 0 {
				<-q.Context().Done()
				return nil, q.Context().Err()
			}
			return nil, nil
		}
	}
	runNode(t, prepare, func(l *testNode) {
		for n, want := range []int32{0, 0, 1, 2} {
			late.Store(int32(n))
			closed.Store(0)
			l.advance(time.Minute)
			if got := closed.Load(); got != want {
				t.Errorf("%d consecutive timeouts: connections closed %d times, want %d", n, got, want)
			}
		}
	})
}

// TestProblemReporter checks that a solved problem is replaced by the problem of another part, even
// if both problems have the same kind.
func TestProblemReporter(t *testing.T) {
	var problems []string
	s := newProblemReporter(&Options{Log: slog.New(slog.DiscardHandler), OnProblem: func(_ context.Context, why string) { problems = append(problems, why) }})
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "n1", errors.New("no"))
	}
	for _, r := range []partResult{{partLease, forbidden("leases")}, {partNode, forbidden("nodes")}, {partLease, nil}, {partPods, forbidden("pods")}, {partNode, nil}, {partPods, nil}} {
		s.update(t.Context(), r, noon)
	}
	if len(problems) != 4 || !strings.Contains(problems[0], "leases") || !strings.Contains(problems[1], "nodes") || !strings.Contains(problems[2], "pods") || problems[3] != "" {
		t.Errorf("got problems %q, want the problems of leases, nodes, pods, and none", problems)
	}
	long := apierrors.NewInternalError(errors.New(strings.Repeat("no\x1b[2J ", 1000)))
	if message := newProblem(long).message; len(message) > 2*maxMessageBytes || strings.Contains(message, "\x1b") {
		t.Errorf("got a message of %d bytes, want at most %d without control characters: %q", len(message), 2*maxMessageBytes, message)
	}
}

// TestRun_NodeDeleted checks that podd does not create a deleted Node again, but uses the Node if
// another client creates it.
func TestRun_NodeDeleted(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.change(func() { l.putNode(l.node, "DELETED"); l.lease = nil })
		l.advance(time.Minute)
		if problems := l.takeProblems(); len(problems) != 1 || !strings.Contains(problems[0], "node n1 was deleted") || l.node != nil || l.lease != nil {
			t.Errorf("deleted: got problems %q, node %v, lease %v; want one problem, no Node and no Lease", problems, l.node, l.lease)
		}
		l.change(func() { l.putNode(&v1.Node{}, "ADDED") })
		l.advance(2 * time.Second)
		if problems := l.takeProblems(); l.ready() != v1.ConditionTrue || len(problems) != 1 || problems[0] != "" || l.lease == nil || l.lease.OwnerReferences[0].UID != l.node.UID {
			t.Errorf("created again: got problems %q, node %v, lease %v; want the problems [\"\"], because no problem is left, a ready Node and a Lease with the Node as owner", problems, l.node, l.lease)
		}
	})
}

// TestRun_NoRegister checks that podd with Register false does not create the Node, but uses the
// Node if another client creates it.
func TestRun_NoRegister(t *testing.T) {
	prepare := func(_ *testNode, o *Options) { o.RegisterNode = false }
	runNode(t, prepare, func(l *testNode) {
		if problems := l.takeProblems(); len(problems) != 1 || !strings.Contains(problems[0], "--register-node=false") || l.node != nil {
			t.Errorf("before the creation: got problems %q, node %v; want one problem with --register-node=false and no Node", problems, l.node)
		}
		l.change(func() { l.putNode(&v1.Node{}, "ADDED") })
		l.advance(2 * time.Second)
		if l.ready() != v1.ConditionTrue || l.lease == nil {
			t.Errorf("after the creation: got node %v, lease %v; want a ready Node and a Lease", l.node, l.lease)
		}
	})
}

// TestLeaseRenewer_Conflict checks that a Lease that another client has changed or deleted is
// renewed at the next attempt.
func TestLeaseRenewer_Conflict(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.change(func() { l.lease = l.lease.DeepCopy(); l.lease.ResourceVersion = "other" })
		l.advance(11 * time.Second)
		l.change(func() {
			if l.lease.ResourceVersion == "other" {
				t.Error("11s after another client changed the Lease: got no renewal, want one")
			}
			l.lease = nil
		})
		l.advance(11 * time.Second)
		if l.lease == nil || len(l.takeProblems()) > 0 {
			t.Errorf("11s after the deletion of the Lease: got %v, want a new Lease and no problem", l.lease)
		}
	})
}

// TestReflector_ShortWatches checks that a proxy that ends every watch at once does not cause many
// requests.
func TestReflector_ShortWatches(t *testing.T) {
	prepare := func(l *testNode, o *Options) {
		o.RegisterNode = false
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") != "" {
				return &http.Response{StatusCode: 200, Header: jsonType, Body: http.NoBody}, nil
			}
			l.fakeAPI.mu.Lock()
			defer l.fakeAPI.mu.Unlock()
			if strings.Contains(q.URL.Path, "/pods") {
				return l.podList(), nil
			}
			return l.handleNode(q.Method, nil), nil
		}
	}
	runNode(t, prepare, func(l *testNode) {
		l.countRequests()
		l.advance(10 * time.Minute)
		if n := l.countRequests("WATCH nodes"); n[0] > 1000 {
			t.Errorf("got %d watches in ten minutes, want at most 1000", n[0])
		}
	})
}
