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

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/credential"
	"podd/cmd/podd/internal/cluster/nodesync"
	"podd/cmd/podd/internal/cluster/podwriter"
	"podd/server"
)

// A testNode runs a Cluster against a fakeAPI, in a synctest bubble.
type testNode struct {
	*fakeAPI
	cluster  *Cluster
	t        *testing.T
	state    *server.LatestView
	mu       sync.Mutex // guards problems and rejected
	problems []string
	rejected []podwriter.Rejection // the argument of the last call of OnRejected
	onClose  func()                // called when connections are closed; may be nil
}

// runNode starts a testNode, lets 2 s pass and calls test. prepare may change the node and its
// options before the start; prepare may be nil.
func runNode(t *testing.T, prepare func(*testNode, *Options), test func(*testNode)) {
	synctest.Test(t, func(t *testing.T) {
		l := &testNode{fakeAPI: &fakeAPI{version: 1, service: "s1"}, t: t, state: server.NewLatestView(&server.View{Revision: 1, NodeObject: clustertest.NewLocalNode()})}
		o := &Options{
			Credential: credential.Config{Kubeconfig: "/none"}, Client: apiserver.Options{ContentType: "application/json", QPS: 50, Burst: 100}, NodeName: "n1",
			Node: nodesync.Config{
				RegisterNode: true, UpdateFrequency: 10 * time.Second, ReportFrequency: 5 * time.Minute, NodeSyncedFile: filepath.Join(t.TempDir(), "node-synced"),
			},
			LeaseDuration: 40 * time.Second, Log: slog.New(slog.DiscardHandler),
			OnProblem:  func(_ context.Context, why string) { l.mu.Lock(); l.problems = append(l.problems, why); l.mu.Unlock() },
			OnRejected: func(_ context.Context, all []podwriter.Rejection) { l.mu.Lock(); l.rejected = all; l.mu.Unlock() },
		}
		if prepare != nil {
			prepare(l, o)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.cluster = New(*o)
		done := l.connect(ctx, l.fakeAPI)
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

// connect runs a connection of l.cluster to api until ctx is done or the kubeconfig has changed. It then
// closes done.
func (l *testNode) connect(ctx context.Context, api *fakeAPI) (done <-chan struct{}) {
	l.t.Helper()
	o := &l.cluster.o
	c := clustertest.NewClient(l.t, api, o.Client)
	c.CloseConnections = func() {
		if l.onClose != nil {
			l.onClose()
		}
	}
	s, ended := newProblemReporter(o), make(chan struct{})
	go s.run(ctx)
	go func() {
		defer close(ended)
		l.cluster.runConnection(ctx, c, nil, l.state, s, l.cluster.credentials.KubeconfigVersion())
	}()
	return ended
}

// advance lets d pass in the bubble and waits until all goroutines are blocked.
func (l *testNode) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// change calls f while it holds mu of the fakeAPI, and then waits until all goroutines are blocked.
func (l *testNode) change(f func()) {
	l.fakeAPI.mu.Lock()
	f()
	l.fakeAPI.mu.Unlock()
	synctest.Wait()
}

// takeProblems returns the arguments of OnProblem since the last call of takeProblems.
func (l *testNode) takeProblems() (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	problems, l.problems = l.problems, nil
	return problems
}

// countRequests returns the number of requests of each kind, such as "GET nodes", since the last
// call of countRequests. It forgets all requests, including those of other kinds.
func (l *testNode) countRequests(kinds ...string) (n []int) {
	l.change(func() {
		for _, kind := range kinds {
			n = append(n, len(slices.DeleteFunc(slices.Clone(l.requests), func(r string) bool { return r != kind })))
		}
		l.requests = nil
	})
	return n
}

// readyStatus returns the status of the Ready condition in the API server, or "" if there is no Node.
func (l *testNode) readyStatus() v1.ConditionStatus {
	l.fakeAPI.mu.Lock()
	defer l.fakeAPI.mu.Unlock()
	if l.node == nil {
		return ""
	}
	return clustertest.NodeCondition(l.t, l.node, v1.NodeReady).Status
}

// TestRun checks that podd creates the Node and the Lease, and that it sends a changed status at once.
func TestRun(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		if l.readyStatus() != v1.ConditionTrue || l.lease == nil || l.lease.OwnerReferences[0].UID != l.storedNode().UID || *l.lease.Spec.HolderIdentity != "n1" {
			t.Errorf("after 2s: got node %v, lease %v; want a ready Node, and a Lease of the holder n1 with the Node as owner", l.storedNode(), l.lease)
		}
		if problems := l.takeProblems(); len(problems) > 0 {
			t.Errorf("got problems %q, want none", problems)
		}
		// A View with the same Node must cause no request. A View with a changed Node must cause a
		// request at once.
		l.countRequests()
		v := *l.state.View()
		v.Revision++
		l.state.Publish(&v)
		l.advance(time.Second)
		if n := l.countRequests("PATCH nodes"); n[0] != 0 {
			t.Errorf("new View with the same Node: got %d patches of the Node, want none", n[0])
		}
		next, down := v, clustertest.NewLocalNode()
		down.Status.Conditions[1].Status = v1.ConditionFalse
		next.Revision, next.NodeObject = v.Revision+1, down
		l.state.Publish(&next)
		synctest.Wait()
		if l.readyStatus() != v1.ConditionFalse {
			t.Errorf("after the local Node became not ready: got Ready %s in the cluster, want False at once", l.readyStatus())
		}
	})
}

// TestRun_Addresses checks that podd registers a host without an IP address if the host only has a
// loopback address, and that podd sends every later address at once.
func TestRun_Addresses(t *testing.T) {
	nodeWithIP := func(ip string) *v1.Node {
		n := clustertest.NewLocalNode()
		n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}, {Type: v1.NodeHostName, Address: "n1"}}
		return n
	}
	prepare := func(l *testNode, _ *Options) {
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: nodeWithIP("127.0.0.1")})
	}
	runNode(t, prepare, func(l *testNode) {
		// The ip "" means that the host still has only its loopback address.
		for _, step := range []struct{ ip, want string }{{"", "n1"}, {"10.0.0.5", "10.0.0.5 n1"}, {"10.0.0.6", "10.0.0.6 n1"}} {
			if v := l.state.View(); step.ip != "" {
				next := *v
				next.Revision, next.NodeObject = v.Revision+1, nodeWithIP(step.ip)
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
				t.Errorf("after the host got the address %q: got addresses %q in the API server, want %q", step.ip, strings.Join(got, " "), step.want)
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
			t.Errorf("requests in an hour: got %d PUT leases, %d PATCH nodes, %d WATCH nodes, %d others; want 330 to 360, 11 to 13, at most 12, no others", n[0], n[1], n[2], n[3]+n[4]+n[5])
		}
	})
}

// TestRun_NoDeclaredFeatures checks an API server older than 1.35, which drops the declared features
// from the status of a Node. podd must not repeat the patch, although the features are missing. It must
// send them after an upgrade of the API server.
func TestRun_NoDeclaredFeatures(t *testing.T) {
	prepare := func(l *testNode, _ *Options) {
		n := clustertest.NewLocalNode()
		n.Status.DeclaredFeatures = []string{"A"}
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: n})
		l.dropNodeFields = func(n *v1.Node) { n.Status.DeclaredFeatures = nil }
	}
	runNode(t, prepare, func(l *testNode) {
		l.advance(10 * time.Minute)
		l.countRequests()
		l.advance(time.Hour)
		if n := l.countRequests("PATCH nodes"); n[0] < 11 || n[0] > 20 {
			t.Errorf("got %d patches of the Node in an hour, want 11 to 20", n[0])
		}
		l.change(func() { l.dropNodeFields = nil; l.interruptWatches() })
		l.advance(time.Hour)
		if got := l.storedNode().Status.DeclaredFeatures; !slices.Equal(got, []string{"A"}) {
			t.Errorf("after the upgrade: got declared features %q, want [\"A\"]", got)
		}
	})
}

// TestRun_Outage checks that podd reports an outage once and sends few requests during the outage.
// The Node must be ready again within 5 s after the outage.
func TestRun_Outage(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*http.Request) (*http.Response, error)
		want  string
	}{
		{"unreachable", func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }, "cannot be reached: connection refused"},
		{"slow", func(q *http.Request) (*http.Response, error) { <-q.Context().Done(); return nil, q.Context().Err() }, "within 10s"},
		{"forbidden", func(*http.Request) (*http.Response, error) {
			return clustertest.ErrorResponse(apierrors.NewForbidden(nodesResource, "n1", nil)), nil
		}, "system:node:NAME"},
		{"unauthorized", func(*http.Request) (*http.Response, error) {
			return clustertest.ErrorResponse(apierrors.NewUnauthorized("no")), nil
		}, "401 Unauthorized"},
		{"server error", func(*http.Request) (*http.Response, error) {
			return clustertest.ErrorResponse(apierrors.NewInternalError(syscall.EIO)), nil
		}, "returned status 500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			runNode(t, nil, func(l *testNode) {
				l.change(func() { l.fault = c.fault; l.interruptWatches() })
				l.advance(10 * time.Minute)
				problems := l.takeProblems()
				if len(problems) != 1 || !strings.Contains(problems[0], c.want) {
					t.Errorf("got problems %q, want one problem that contains %q", problems, c.want)
				}
				if n := l.countRequests("GET nodes", "PUT leases", "PATCH nodes"); n[0]+n[1]+n[2] > 10*60 {
					t.Errorf("requests in ten minutes: got %d GET nodes, %d PUT leases, %d PATCH nodes; want at most 600 together", n[0], n[1], n[2])
				}
				// During the outage the node controller has set the Ready condition to Unknown.
				l.change(func() {
					lost := l.node.DeepCopy()
					lost.Status.Conditions[1].Status = v1.ConditionUnknown
					l.putNode(lost, "MODIFIED")
					l.fault = nil
				})
				// A hanging request first has to time out.
				l.advance(5*time.Second + map[bool]time.Duration{true: apiserver.RequestTimeout}[c.name == "slow"])
				if l.readyStatus() != v1.ConditionTrue {
					t.Errorf("5s after the outage: got Ready %s, want True", l.readyStatus())
				}
				l.advance(10 * time.Second)
				if problems := l.takeProblems(); len(problems) != 1 || problems[0] != "" {
					t.Errorf("after the outage: got problems %q, want [\"\"], because no problem is left", problems)
				}
			})
		})
	}
}

// TestRun_KubeconfigChanges checks that podd uses the last valid kubeconfig while the content of the
// file is invalid, and ends the connection when the file contains another valid kubeconfig.
func TestRun_KubeconfigChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	valid := strings.Replace(clustertest.Kubeconfig, ", certificate-authority: ca.crt", "", 1)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(valid)
	runNode(t, func(_ *testNode, o *Options) { o.Credential.Kubeconfig = file }, func(l *testNode) {
		for _, invalid := range []string{"", valid[:60], clustertest.Kubeconfig} {
			write(invalid)
			l.advance(15 * time.Second)
			l.countRequests()
			l.advance(time.Minute)
			if n := l.countRequests("PUT leases"); n[0] < 5 {
				t.Errorf("kubeconfig %q: got %d Lease renewals in 1m, want at least 5 with the last valid kubeconfig", invalid, n[0])
			}
			if problems := l.takeProblems(); len(problems) > 1 || len(problems) == 1 && !strings.Contains(problems[0], file) {
				t.Errorf("kubeconfig %q: got problems %q, want at most one, which must contain %q", invalid, problems, file)
			}
		}
		write(valid + "# changed\n")
		l.advance(15 * time.Second)
		l.countRequests()
		l.advance(time.Minute)
		if n := l.countRequests("PUT leases"); n[0] > 0 {
			t.Errorf("after a change to another valid kubeconfig: got %d Lease renewals over the previous connection in 1m, want none", n[0])
		}
	})
}

// TestLeaseRenewer_Timeouts checks that podd closes its connections after each timeout of a Lease
// request except the first of consecutive timeouts.
func TestLeaseRenewer_Timeouts(t *testing.T) {
	var closed atomic.Int32
	var timeouts atomic.Int32 // number of Lease requests that still have to time out
	prepare := func(l *testNode, _ *Options) {
		l.onClose = func() { closed.Add(1) }
		l.fault = func(q *http.Request) (*http.Response, error) {
			if strings.Contains(q.URL.Path, "/leases") && timeouts.Add(-1) >= 0 {
				<-q.Context().Done()
				return nil, q.Context().Err()
			}
			return nil, nil
		}
	}
	runNode(t, prepare, func(l *testNode) {
		for n, want := range []int32{0, 0, 1, 2} {
			timeouts.Store(int32(n))
			closed.Store(0)
			l.advance(time.Minute)
			if got := closed.Load(); got != want {
				t.Errorf("%d consecutive timeouts: got connections closed %d times, want %d times", n, got, want)
			}
		}
	})
}

// TestProblemReporter checks a problem of one part of the connection, such as the Lease, that is solved
// while another part still has a problem. podd must then report the remaining problem, even if both
// problems have the same kind. The length of a message must be limited.
func TestProblemReporter(t *testing.T) {
	var problems []string
	s := newProblemReporter(&Options{Log: slog.New(slog.DiscardHandler), OnProblem: func(_ context.Context, why string) { problems = append(problems, why) }})
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "n1", errors.New("no"))
	}
	for _, r := range []partResult{{partLease, forbidden("leases")}, {partNode, forbidden("nodes")}, {partLease, nil}, {partPods, forbidden("pods")}, {partNode, nil}, {partPods, nil}} {
		s.update(t.Context(), r, clustertest.Noon)
	}
	if len(problems) != 4 || !strings.Contains(problems[0], "leases") || !strings.Contains(problems[1], "nodes") || !strings.Contains(problems[2], "pods") || problems[3] != "" {
		t.Errorf("got problems %q; want four messages: three that contain \"leases\", \"nodes\" and \"pods\", and an empty one", problems)
	}
	long := apierrors.NewInternalError(errors.New(strings.Repeat("no\x1b[2J ", 1000)))
	if message := newProblem(long).message; len(message) > 2*apiserver.MaxMessageBytes || strings.Contains(message, "\x1b") {
		t.Errorf("got a message of %d bytes, want at most %d bytes and no control characters: %q", len(message), 2*apiserver.MaxMessageBytes, message)
	}
}

// TestRun_NodeDeleted checks that podd does not create the Node again after its deletion, but uses a
// Node that another client creates.
func TestRun_NodeDeleted(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.change(func() { l.putNode(l.node, "DELETED"); l.lease = nil })
		l.advance(time.Minute)
		if problems := l.takeProblems(); len(problems) != 1 || !strings.Contains(problems[0], "node n1 was deleted") || l.storedNode() != nil || l.lease != nil {
			t.Errorf("after the deletion: got problems %q, node %v, lease %v; want one problem that contains \"node n1 was deleted\", no Node and no Lease", problems, l.storedNode(), l.lease)
		}
		l.change(func() { l.putNode(&v1.Node{}, "ADDED") })
		l.advance(2 * time.Second)
		if problems := l.takeProblems(); l.readyStatus() != v1.ConditionTrue || len(problems) != 1 || problems[0] != "" || l.lease == nil || l.lease.OwnerReferences[0].UID != l.storedNode().UID {
			t.Errorf("after another client created the Node: got problems %q, node %v, lease %v; want [\"\"] (no problem is left), a ready Node, and a Lease with the Node as owner", problems, l.storedNode(), l.lease)
		}
	})
}

// TestRun_NoRegister checks that podd does not create the Node if RegisterNode is false, but uses a
// Node that another client creates.
func TestRun_NoRegister(t *testing.T) {
	prepare := func(_ *testNode, o *Options) { o.Node.RegisterNode = false }
	runNode(t, prepare, func(l *testNode) {
		if problems := l.takeProblems(); len(problems) != 1 || !strings.Contains(problems[0], "--register-node=false") || l.storedNode() != nil {
			t.Errorf("before another client created the Node: got problems %q, node %v; want one problem that contains \"--register-node=false\", and no Node", problems, l.storedNode())
		}
		l.change(func() { l.putNode(&v1.Node{}, "ADDED") })
		l.advance(2 * time.Second)
		if l.readyStatus() != v1.ConditionTrue || l.lease == nil {
			t.Errorf("after another client created the Node: got node %v, lease %v; want a ready Node and a Lease", l.storedNode(), l.lease)
		}
	})
}

// TestLeaseRenewer_Conflict checks that the next renewal succeeds after another client has changed or
// deleted the Lease.
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
		if problems := l.takeProblems(); l.lease == nil || len(problems) > 0 {
			t.Errorf("11s after the deletion of the Lease: got Lease %v, problems %q; want a new Lease and no problem", l.lease, problems)
		}
	})
}

// TestReflector_ShortWatches checks that podd sends few requests if a proxy ends every watch at once.
func TestReflector_ShortWatches(t *testing.T) {
	prepare := func(l *testNode, o *Options) {
		o.Node.RegisterNode = false
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") != "" {
				return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: http.NoBody}, nil
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
