package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
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
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/credential"
	"podd/cmd/podd/internal/cluster/nodesync"
	"podd/cmd/podd/internal/cluster/podwriter"
	"podd/server"
	"podd/server/events"
)

// A testNode runs a Cluster against an API server, in a synctest bubble.
type testNode struct {
	*clustertest.API
	cluster  *Cluster
	t        *testing.T
	state    *server.LatestView
	mu       sync.Mutex // guards problems and rejected
	problems []string
	rejected []podwriter.Rejection // the argument of the last call of OnRejected
}

// runNode starts a testNode, lets 2 s pass and calls test. prepare may change the node and its
// options before the start; prepare may be nil.
func runNode(t *testing.T, prepare func(*testNode, *Options), test func(*testNode)) {
	synctest.Test(t, func(t *testing.T) {
		l := &testNode{API: &clustertest.API{Version: 1, Service: "s1"}, t: t, state: server.NewLatestView(&server.View{Revision: 1, NodeObject: clustertest.NewLocalNode()})}
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
		done := l.connect(ctx, l.API)
		clustertest.Advance(2 * time.Second)
		test(l)
		cancel()
		<-done
		l.mu.Lock()
		defer l.mu.Unlock()
		l.API.Mu.Lock()
		defer l.API.Mu.Unlock()
		l.InterruptWatches()
	})
}

// connect runs a connection of l.cluster to api until ctx is done or the kubeconfig has changed. It then
// closes done.
func (l *testNode) connect(ctx context.Context, api *clustertest.API) (done <-chan struct{}) {
	l.t.Helper()
	o := &l.cluster.o
	c := clustertest.NewClient(l.t, api, o.Client)
	s, ended := newProblemReporter(o), make(chan struct{})
	go s.run(ctx)
	go func() {
		defer close(ended)
		l.cluster.runConnection(ctx, c, nil, l.state, s, l.cluster.credentials.KubeconfigVersion())
	}()
	return ended
}

// takeProblems returns the arguments of OnProblem since the last call of takeProblems.
func (l *testNode) takeProblems() (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	problems, l.problems = l.problems, nil
	return problems
}

// readyStatus returns the status of the Ready condition in the API server, or "" if there is no Node.
func (l *testNode) readyStatus() v1.ConditionStatus {
	l.API.Mu.Lock()
	defer l.API.Mu.Unlock()
	if l.Node == nil {
		return ""
	}
	return clustertest.NodeCondition(l.t, l.Node, v1.NodeReady).Status
}

// TestRun checks that podd creates the Node and the Lease, and that it sends a changed status at once.
func TestRun(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		if l.readyStatus() != v1.ConditionTrue || l.Lease == nil || l.Lease.OwnerReferences[0].UID != l.StoredNode().UID || *l.Lease.Spec.HolderIdentity != "n1" {
			t.Errorf("after 2s: got node %v, lease %v; want a ready Node, and a Lease of the holder n1 with the Node as owner", l.StoredNode(), l.Lease)
		}
		if problems := l.takeProblems(); len(problems) > 0 {
			t.Errorf("got problems %q, want none", problems)
		}
		// A View with the same Node must cause no request. A View with a changed Node must cause a
		// request at once.
		l.CountRequests()
		v := *l.state.View()
		v.Revision++
		l.state.Publish(&v)
		clustertest.Advance(time.Second)
		if n := l.CountRequests("PATCH nodes"); n[0] != 0 {
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

// TestRun_Idle checks the number of requests of an idle node.
func TestRun_Idle(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		clustertest.Advance(10 * time.Minute)
		l.CountRequests()
		clustertest.Advance(time.Hour)
		n := l.CountRequests("PUT leases", "PATCH nodes", "WATCH nodes", "GET nodes", "GET leases", "POST nodes")
		if n[0] < 330 || n[0] > 360 || n[1] < 11 || n[1] > 13 || n[2] > 12 || n[3]+n[4]+n[5] > 0 {
			t.Errorf("requests in an hour: got %d PUT leases, %d PATCH nodes, %d WATCH nodes, %d others; want 330 to 360, 11 to 13, at most 12, no others", n[0], n[1], n[2], n[3]+n[4]+n[5])
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
			return clustertest.ErrorResponse(apierrors.NewForbidden(v1.Resource("nodes"), "n1", nil)), nil
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
				l.Change(func() { l.Fault = c.fault; l.InterruptWatches() })
				clustertest.Advance(10 * time.Minute)
				problems := l.takeProblems()
				if len(problems) != 1 || !strings.Contains(problems[0], c.want) {
					t.Errorf("got problems %q, want one problem that contains %q", problems, c.want)
				}
				if n := l.CountRequests("GET nodes", "PUT leases", "PATCH nodes"); n[0]+n[1]+n[2] > 10*60 {
					t.Errorf("requests in ten minutes: got %d GET nodes, %d PUT leases, %d PATCH nodes; want at most 600 together", n[0], n[1], n[2])
				}
				// During the outage the node controller has set the Ready condition to Unknown.
				l.Change(func() {
					lost := l.Node.DeepCopy()
					lost.Status.Conditions[1].Status = v1.ConditionUnknown
					l.PutNode(lost, "MODIFIED")
					l.Fault = nil
				})
				// A hanging request first has to time out.
				clustertest.Advance(5*time.Second + map[bool]time.Duration{true: apiserver.RequestTimeout}[c.name == "slow"])
				if l.readyStatus() != v1.ConditionTrue {
					t.Errorf("5s after the outage: got Ready %s, want True", l.readyStatus())
				}
				clustertest.Advance(10 * time.Second)
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
			clustertest.Advance(15 * time.Second)
			l.CountRequests()
			clustertest.Advance(time.Minute)
			if n := l.CountRequests("PUT leases"); n[0] < 5 {
				t.Errorf("kubeconfig %q: got %d Lease renewals in 1m, want at least 5 with the last valid kubeconfig", invalid, n[0])
			}
			if problems := l.takeProblems(); len(problems) > 1 || len(problems) == 1 && !strings.Contains(problems[0], file) {
				t.Errorf("kubeconfig %q: got problems %q, want at most one, which must contain %q", invalid, problems, file)
			}
		}
		write(valid + "# changed\n")
		clustertest.Advance(15 * time.Second)
		l.CountRequests()
		clustertest.Advance(time.Minute)
		if n := l.CountRequests("PUT leases"); n[0] > 0 {
			t.Errorf("after a change to another valid kubeconfig: got %d Lease renewals over the previous connection in 1m, want none", n[0])
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
		l.Change(func() { l.PutNode(l.Node, "DELETED"); l.Lease = nil })
		clustertest.Advance(time.Minute)
		if problems := l.takeProblems(); len(problems) != 1 || !strings.Contains(problems[0], "node n1 was deleted") || l.StoredNode() != nil || l.Lease != nil {
			t.Errorf("after the deletion: got problems %q, node %v, lease %v; want one problem that contains \"node n1 was deleted\", no Node and no Lease", problems, l.StoredNode(), l.Lease)
		}
		l.Change(func() { l.PutNode(&v1.Node{}, "ADDED") })
		clustertest.Advance(2 * time.Second)
		if problems := l.takeProblems(); l.readyStatus() != v1.ConditionTrue || len(problems) != 1 || problems[0] != "" || l.Lease == nil || l.Lease.OwnerReferences[0].UID != l.StoredNode().UID {
			t.Errorf("after another client created the Node: got problems %q, node %v, lease %v; want [\"\"] (no problem is left), a ready Node, and a Lease with the Node as owner", problems, l.StoredNode(), l.Lease)
		}
	})
}

// TestRun_NoRegister checks that podd does not create the Node if RegisterNode is false, but uses a
// Node that another client creates.
func TestRun_NoRegister(t *testing.T) {
	prepare := func(_ *testNode, o *Options) { o.Node.RegisterNode = false }
	runNode(t, prepare, func(l *testNode) {
		if problems := l.takeProblems(); len(problems) != 1 || !strings.Contains(problems[0], "--register-node=false") || l.StoredNode() != nil {
			t.Errorf("before another client created the Node: got problems %q, node %v; want one problem that contains \"--register-node=false\", and no Node", problems, l.StoredNode())
		}
		l.Change(func() { l.PutNode(&v1.Node{}, "ADDED") })
		clustertest.Advance(2 * time.Second)
		if l.readyStatus() != v1.ConditionTrue || l.Lease == nil {
			t.Errorf("after another client created the Node: got node %v, lease %v; want a ready Node and a Lease", l.StoredNode(), l.Lease)
		}
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
	runNode(t, func(l *testNode, _ *Options) { l.Fault = unreachable }, func(l *testNode) {
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
			l.Change(func() { l.Fault = step.fault; l.InterruptWatches() })
			clustertest.Advance(time.Minute)
			if got := l.cluster.Reachable(); got != step.want {
				t.Errorf("%s: got reachable %t, want %t", step.name, got, step.want)
			}
		}
	})
}

// TestRun_Events checks that podd sends the events of Options.Events to the API server.
func TestRun_Events(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	var reasons []string // the reasons of the received events
	var object v1.ObjectReference
	prepare := func(l *testNode, o *Options) {
		o.Events = log
		l.Fault = func(q *http.Request) (*http.Response, error) {
			if q.Method != http.MethodPost || !strings.HasSuffix(q.URL.Path, "/namespaces/default/events") {
				return nil, nil
			}
			body, err := io.ReadAll(q.Body)
			if err != nil {
				return nil, err
			}
			e := clustertest.MustDecode[v1.Event](body)
			e.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}
			reasons, object = append(reasons, e.Reason), e.InvolvedObject
			return clustertest.Response(http.StatusCreated, e), nil
		}
	}
	runNode(t, prepare, func(l *testNode) {
		log.Add(events.Occurrence{Type: v1.EventTypeNormal, Reason: "Starting", Message: "Starting kubelet.", Time: time.Now()})
		synctest.Wait()
		if !slices.Equal(reasons, []string{"Starting"}) {
			t.Errorf("got events with the reasons %q, want [\"Starting\"]", reasons)
		}
		if want := (v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: l.Node.UID}); object != want {
			t.Errorf("got the involved object %+v, want %+v", object, want)
		}
	})
}
