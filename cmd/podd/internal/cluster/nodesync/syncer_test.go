package nodesync

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/inuse"
	"podd/server"
)

// A testSyncer runs a Syncer for the Node n1 against an API server. A Reflector watches the Node.
type testSyncer struct {
	*clustertest.API
	syncer  *Syncer
	state   *server.LatestView
	volumes inuse.Volumes
	mu      sync.Mutex // guards errs
	errs    []error    // the reported results, nil for a success
}

// runSyncer starts a Syncer in a synctest bubble, lets 2 s pass and calls test. prepare may be nil.
func runSyncer(t *testing.T, prepare func(*testSyncer, *Options), test func(*testSyncer)) {
	synctest.Test(t, func(t *testing.T) {
		l := &testSyncer{API: &clustertest.API{Version: 1}, state: server.NewLatestView(&server.View{Revision: 1, NodeObject: clustertest.NewLocalNode()})}
		o := Options{
			Config: Config{
				RegisterNode: true, UpdateFrequency: 10 * time.Second, ReportFrequency: 5 * time.Minute, NodeSyncedFile: filepath.Join(t.TempDir(), "node-synced"),
			},
			NodeName: "n1", Client: clustertest.NewClient(t, l.API, apiserver.Options{QPS: 50, Burst: 100}), VolumesInUse: &l.volumes, Log: slog.New(slog.DiscardHandler),
			Report: func(_ context.Context, err error) { l.mu.Lock(); l.errs = append(l.errs, err); l.mu.Unlock() },
		}
		if prepare != nil {
			prepare(l, &o)
		}
		o.State = l.state
		var nodes apiserver.Store[*v1.Node]
		reflector := apiserver.Reflector[*v1.Node]{
			Client: o.Client, Query: o.Client.NodeQuery("n1"), EmptyList: &v1.NodeList{}, Publish: nodes.Set, Report: func(context.Context, error) {},
		}
		l.syncer = New(o)
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { reflector.Run(ctx) })
		parts.Go(func() { l.syncer.Run(ctx, &nodes) })
		clustertest.Advance(2 * time.Second)
		test(l)
		cancel()
		parts.Wait()
	})
}

// lastError returns the last reported result, or nil if there is none.
func (l *testSyncer) lastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) == 0 {
		return nil
	}
	return l.errs[len(l.errs)-1]
}

// TestSyncer_Addresses checks that podd registers a host without an IP address if the host only has a
// loopback address, and that podd sends every later address at once.
func TestSyncer_Addresses(t *testing.T) {
	nodeWithIP := func(ip string) *v1.Node {
		n := clustertest.NewLocalNode()
		n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}, {Type: v1.NodeHostName, Address: "n1"}}
		return n
	}
	prepare := func(l *testSyncer, _ *Options) {
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: nodeWithIP("127.0.0.1")})
	}
	runSyncer(t, prepare, func(l *testSyncer) {
		// The ip "" means that the host still has only its loopback address.
		for _, step := range []struct{ ip, want string }{{"", "n1"}, {"10.0.0.5", "10.0.0.5 n1"}, {"10.0.0.6", "10.0.0.6 n1"}} {
			if v := l.state.View(); step.ip != "" {
				next := *v
				next.Revision, next.NodeObject = v.Revision+1, nodeWithIP(step.ip)
				l.state.Publish(&next)
				clustertest.Advance(time.Second)
			}
			var got []string
			l.Change(func() {
				for _, a := range l.Node.Status.Addresses {
					got = append(got, a.Address)
				}
			})
			if strings.Join(got, " ") != step.want {
				t.Errorf("after the host got the address %q: got addresses %q in the API server, want %q", step.ip, strings.Join(got, " "), step.want)
			}
		}
	})
}

// TestSyncer_NoDeclaredFeatures checks an API server older than 1.35, which drops the declared features
// from the status of a Node. podd must not repeat the patch, although the features are missing. It must
// send them after an upgrade of the API server.
func TestSyncer_NoDeclaredFeatures(t *testing.T) {
	prepare := func(l *testSyncer, _ *Options) {
		n := clustertest.NewLocalNode()
		n.Status.DeclaredFeatures = []string{"A"}
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: n})
		l.DropNodeFields = func(n *v1.Node) { n.Status.DeclaredFeatures = nil }
	}
	runSyncer(t, prepare, func(l *testSyncer) {
		clustertest.Advance(10 * time.Minute)
		l.CountRequests()
		clustertest.Advance(time.Hour)
		if n := l.CountRequests("PATCH nodes"); n[0] < 11 || n[0] > 20 {
			t.Errorf("got %d patches of the Node in an hour, want 11 to 20", n[0])
		}
		l.Change(func() { l.DropNodeFields = nil; l.InterruptWatches() })
		clustertest.Advance(time.Hour)
		if got := l.StoredNode().Status.DeclaredFeatures; !slices.Equal(got, []string{"A"}) {
			t.Errorf("after the upgrade: got declared features %q, want [\"A\"]", got)
		}
	})
}

// TestSyncer_NodeSyncedFile checks that podd creates the file after the first successful sync of the Node.
func TestSyncer_NodeSyncedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node-synced")
	prepare := func(l *testSyncer, o *Options) {
		o.NodeSyncedFile = file
		l.Fault = func(q *http.Request) (*http.Response, error) {
			if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/nodes") {
				return nil, errors.New("the API server is unreachable")
			}
			return nil, nil
		}
	}
	runSyncer(t, prepare, func(l *testSyncer) {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("before the first sync: got error %v, want %v", err, fs.ErrNotExist)
		}
		l.Change(func() { l.Fault = nil })
		clustertest.Advance(time.Minute)
		if _, err := os.Stat(file); err != nil {
			t.Errorf("after the first sync: got error %v, want none", err)
		}
	})
}

// TestSyncer_ConfigCondition checks that podd writes its condition KubeletConfigOk, and removes it when the
// View no longer contains it. Conditions of other clients must remain.
func TestSyncer_ConfigCondition(t *testing.T) {
	withCondition := clustertest.NewLocalNode()
	withCondition.Status.Conditions = append(withCondition.Status.Conditions, v1.NodeCondition{Type: server.ConfigCondition, Status: v1.ConditionTrue})
	prepare := func(l *testSyncer, _ *Options) {
		n := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: "KernelDeadlock", Status: v1.ConditionFalse}}}}
		l.PutNode(n, "ADDED")
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: withCondition})
	}
	runSyncer(t, prepare, func(l *testSyncer) {
		check := func(when string, want bool) {
			t.Helper()
			stored := l.StoredNode()
			clustertest.NodeCondition(t, stored, "KernelDeadlock")
			if got := slices.ContainsFunc(stored.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == server.ConfigCondition }); got != want {
				t.Errorf("%s: got conditions %v, want KubeletConfigOk %t", when, stored.Status.Conditions, want)
			}
		}
		check("at the start", true)
		publish := func(n *v1.Node) {
			next := *l.state.View()
			next.Revision, next.NodeObject = next.Revision+1, n
			l.state.Publish(&next)
			clustertest.Advance(time.Second)
		}
		publish(clustertest.NewLocalNode())
		check("after the condition was removed from the View", false)
		l.CountRequests()
		clustertest.Advance(time.Minute)
		if n := l.CountRequests("PATCH nodes"); n[0] > 0 {
			t.Errorf("after the condition was removed: got %d patches of the Node in a minute, want none", n[0])
		}
		publish(withCondition)
		check("after the condition was added again", true)
	})
}

// TestSyncer_RegistrationSteps checks the steps of the registration and their order. If the Node exists, there
// must be no registration.
func TestSyncer_RegistrationSteps(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*testSyncer)
		want    []RegistrationStep
	}{
		{"new", func(*testSyncer) {}, []RegistrationStep{Attempted, Registered, Ready}},
		{"not ready", func(l *testSyncer) { l.state.View().NodeObject.Status.Conditions[1].Status = v1.ConditionFalse }, []RegistrationStep{Attempted, Registered}},
		{"existing", func(l *testSyncer) { l.Node = &v1.Node{}; l.Node.Name, l.Node.UID = "n1", "u1" }, []RegistrationStep{Ready}},
	} {
		var got []RegistrationStep
		prepare := func(l *testSyncer, o *Options) {
			o.OnRegistrationStep = func(step RegistrationStep, _ time.Time) { got = append(got, step) }
			test.prepare(l)
		}
		runSyncer(t, prepare, func(*testSyncer) {})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got steps %v, want %v", test.name, got, test.want)
		}
	}
}

// TestSyncer_NodeDeleted checks that podd does not create the Node again after its deletion, but uses a Node
// that another client creates. UID must return the UID of the current Node.
func TestSyncer_NodeDeleted(t *testing.T) {
	runSyncer(t, nil, func(l *testSyncer) {
		if uid := l.syncer.UID(); uid == nil || *uid != l.StoredNode().UID {
			t.Errorf("after the registration: got UID %v, want that of the Node, %s", uid, l.StoredNode().UID)
		}
		l.Change(func() { l.PutNode(l.Node.DeepCopy(), "DELETED") })
		clustertest.Advance(time.Hour)
		if err := l.lastError(); err != (DeletedError{"n1"}) || l.StoredNode() != nil || l.syncer.UID() != nil {
			t.Errorf("after the deletion: got error %v, Node %v, UID %v; want the error %v, no Node and no UID", err, l.StoredNode(), l.syncer.UID(), DeletedError{"n1"})
		}
		l.Change(func() { l.PutNode(&v1.Node{}, "ADDED") })
		clustertest.Advance(time.Second)
		n := l.StoredNode()
		if ready := clustertest.NodeCondition(t, n, v1.NodeReady); ready.Status != v1.ConditionTrue || l.lastError() != nil || l.syncer.UID() == nil || *l.syncer.UID() != n.UID {
			t.Errorf("after another client created the Node: got condition %v, error %v, UID %v; want a ready Node, no error, UID %s", ready, l.lastError(), l.syncer.UID(), n.UID)
		}
	})
}

// TestSyncer_NoRegister checks that podd does not create the Node if RegisterNode is false, but uses a Node
// that another client creates.
func TestSyncer_NoRegister(t *testing.T) {
	runSyncer(t, func(_ *testSyncer, o *Options) { o.RegisterNode = false }, func(l *testSyncer) {
		clustertest.Advance(time.Hour)
		if err := l.lastError(); err != (MissingError{"n1"}) || l.StoredNode() != nil {
			t.Errorf("without a Node: got error %v, Node %v; want the error %v, no Node", err, l.StoredNode(), MissingError{"n1"})
		}
		l.Change(func() { l.PutNode(&v1.Node{}, "ADDED") })
		clustertest.Advance(time.Second)
		if ready := clustertest.NodeCondition(t, l.StoredNode(), v1.NodeReady); ready.Status != v1.ConditionTrue || l.lastError() != nil {
			t.Errorf("after another client created the Node: got condition %v, error %v; want a ready Node, no error", ready, l.lastError())
		}
	})
}

// TestSyncer_DisksInUse checks that volumesInUse names the volumes of bound pods, and iSCSI and Fibre Channel
// volumes as long as they are on this node. It must keep their names if podd cannot read them.
func TestSyncer_DisksInUse(t *testing.T) {
	const iscsi, fc = v1.UniqueVolumeName("kubernetes.io/iscsi/192.0.2.1:iqn.2001-04.com.example:disk:1"), v1.UniqueVolumeName("kubernetes.io/fc/[w1]")
	var onNode []v1.UniqueVolumeName // guarded by Mu of the API
	var failure error
	prepare := func(l *testSyncer, o *Options) {
		o.DisksInUse = func() (all []v1.UniqueVolumeName, err error) {
			l.Mu.Lock()
			defer l.Mu.Unlock()
			return slices.Clone(onNode), failure
		}
	}
	runSyncer(t, prepare, func(l *testSyncer) {
		check := func(when string, want ...v1.UniqueVolumeName) {
			t.Helper()
			clustertest.Advance(15 * time.Second)
			if got := l.StoredNode().Status.VolumesInUse; !slices.Equal(got, want) {
				t.Errorf("%s: got volumesInUse %v, want %v", when, got, want)
			}
		}
		setDesired := func(names ...v1.UniqueVolumeName) {
			w := inuse.Desired{Names: map[v1.UniqueVolumeName]bool{}, DriversWithoutAttachment: map[string]bool{}, IsComplete: true}
			for _, name := range names {
				w.Names[name] = true
			}
			l.volumes.SetDesired(w)
		}
		setDesired(iscsi, fc)
		check("bound pod", fc, iscsi)
		if isReported, _ := l.volumes.IsReported(fc); !isReported {
			t.Errorf("after the status was written: got %s not reported, want it reported", fc)
		}
		l.Change(func() { onNode = []v1.UniqueVolumeName{iscsi} })
		setDesired()
		check("pod deleted, one volume on this node", iscsi)
		l.Change(func() { onNode, failure = nil, errors.New("broken disk") })
		check("volumes on this node unknown", iscsi)
		l.Change(func() { onNode = []v1.UniqueVolumeName{fc} })
		check("one volume on this node, others unknown", fc, iscsi)
		l.Change(func() { onNode, failure = nil, nil })
		check("no volume on this node")
	})
}
