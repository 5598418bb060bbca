package lease

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/clustertest"
)

// A testRenewer runs a Renewer for the Node n1 against an API server.
type testRenewer struct {
	*clustertest.API
	owner   atomic.Pointer[types.UID] // the UID of the Node; nil if the Node does not exist
	closed  atomic.Int32              // number of calls of CloseConnections
	mu      sync.Mutex                // guards reports
	reports []error                   // the arguments of Report
}

// runRenewer starts a Renewer in a synctest bubble, waits until it has handled its first attempt, and calls
// test. The Node exists and has the UID u1. prepare may change this before the start; it may be nil.
func runRenewer(t *testing.T, prepare, test func(*testRenewer)) {
	synctest.Test(t, func(t *testing.T) {
		r := &testRenewer{API: &clustertest.API{Version: 1}}
		r.owner.Store(new(types.UID("u1")))
		if prepare != nil {
			prepare(r)
		}
		client := clustertest.NewClient(t, r.API, apiserver.Options{})
		client.CloseConnections = func() { r.closed.Add(1) }
		renewer := &Renewer{
			Client: client, NodeName: "n1", Duration: 40 * time.Second, OwnerUID: r.owner.Load,
			Report: func(_ context.Context, err error) { r.mu.Lock(); r.reports = append(r.reports, err); r.mu.Unlock() },
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); renewer.Run(ctx) }()
		synctest.Wait()
		test(r)
		cancel()
		<-done
	})
}

// stored returns the Lease in the API server, or nil.
func (r *testRenewer) stored() *coordination.Lease {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.Lease
}

// takeReports returns the number of successes and failures that were reported since the last call.
func (r *testRenewer) takeReports() (successes, failures int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.reports {
		if err == nil {
			successes++
		} else {
			failures++
		}
	}
	r.reports = nil
	return successes, failures
}

// checkLease checks the owner of the Lease, and that the Lease was renewed within age.
func (r *testRenewer) checkLease(t *testing.T, when string, owner types.UID, age time.Duration) {
	t.Helper()
	l := r.stored()
	if l == nil || len(l.OwnerReferences) != 1 || l.OwnerReferences[0].UID != owner || time.Since(l.Spec.RenewTime.Time) > age {
		t.Errorf("%s: got Lease %+v at %s, want one with the owner %s that was renewed in the last %s", when, l, time.Now(), owner, age)
	}
}

// TestRenewer checks the content of a new Lease, and that podd renews it whenever a quarter of its
// duration has passed, with one request.
func TestRenewer(t *testing.T) {
	runRenewer(t, nil, func(r *testRenewer) {
		l := r.stored()
		if l == nil {
			t.Fatal("at the start: got no Lease, want one")
		}
		if l.Namespace != "kube-node-lease" || l.Name != "n1" || *l.Spec.HolderIdentity != "n1" || *l.Spec.LeaseDurationSeconds != 40 || !l.Spec.RenewTime.Equal(new(metav1.NowMicro())) {
			t.Errorf("got Lease %+v, want kube-node-lease/n1 with the holder n1, a duration of 40s and the current time", l)
		}
		if o := l.OwnerReferences; len(o) != 1 || o[0].APIVersion != "v1" || o[0].Kind != "Node" || o[0].Name != "n1" || o[0].UID != "u1" {
			t.Errorf("got owners %+v, want the Node n1 with the UID u1", o)
		}
		r.CountRequests()
		clustertest.Advance(9 * time.Second)
		if n := r.CountRequests("PUT leases"); n[0] > 0 {
			t.Errorf("9s after the creation: got %d renewals, want none", n[0])
		}
		clustertest.Advance(1500 * time.Millisecond)
		r.checkLease(t, "10.5s after the creation", "u1", 500*time.Millisecond)
		r.CountRequests()
		r.takeReports()
		clustertest.Advance(time.Hour)
		n := r.CountRequests("PUT leases", "GET leases", "POST leases")
		if successes, failures := r.takeReports(); n[0] < 346 || n[0] > 360 || n[1]+n[2] > 0 || successes != n[0] || failures > 0 {
			t.Errorf("in an hour: got %d PUTs, %d GETs, %d POSTs, %d reported successes, %d failures; want 346 to 360 PUTs, each reported as a success", n[0], n[1], n[2], successes, failures)
		}
	})
}

// TestRenewer_ExistingLease checks that podd renews a Lease of an earlier process. It must set the owner and
// the duration, because the Node or the configuration may have changed, and keep all other fields.
func TestRenewer_ExistingLease(t *testing.T) {
	prepare := func(r *testRenewer) {
		r.Lease = &coordination.Lease{
			TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: "n1", ResourceVersion: "1", Labels: map[string]string{"a": "b"}, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u0"},
			}},
			Spec: coordination.LeaseSpec{HolderIdentity: new("n1"), LeaseDurationSeconds: new(int32(10)), LeaseTransitions: new(int32(3))},
		}
	}
	runRenewer(t, prepare, func(r *testRenewer) {
		r.checkLease(t, "at the start", "u1", 0)
		if l := r.stored(); *l.Spec.LeaseDurationSeconds != 40 || *l.Spec.LeaseTransitions != 3 || l.Labels["a"] != "b" {
			t.Errorf("got Lease %+v, want a duration of 40s, and the stored label and leaseTransitions", l)
		}
		if n := r.CountRequests("GET leases", "PUT leases", "POST leases"); n[0] != 1 || n[1] != 1 || n[2] != 0 {
			t.Errorf("got %d GETs, %d PUTs, %d POSTs; want one GET and one PUT", n[0], n[1], n[2])
		}
	})
}

// TestRenewer_Node checks that podd creates the Lease only if the Node exists. After the deletion of the
// Node, podd must continue to renew the Lease, but not create it again. A new Node must become the owner.
func TestRenewer_Node(t *testing.T) {
	runRenewer(t, func(r *testRenewer) { r.owner.Store(nil) }, func(r *testRenewer) {
		clustertest.Advance(time.Hour)
		n := r.CountRequests("GET leases", "PUT leases", "POST leases")
		if successes, failures := r.takeReports(); n[0]+n[1]+n[2]+successes+failures > 0 {
			t.Errorf("without a Node: got %v requests, %d successes, %d failures; want none", n, successes, failures)
		}
		r.owner.Store(new(types.UID("u1")))
		clustertest.Advance(time.Second)
		r.checkLease(t, "1s after the creation of the Node", "u1", time.Second)
		r.owner.Store(nil)
		clustertest.Advance(time.Minute)
		r.checkLease(t, "after the deletion of the Node", "u1", 11*time.Second)
		r.Change(func() { r.Lease = nil })
		clustertest.Advance(time.Minute)
		if l := r.stored(); l != nil {
			t.Errorf("after the deletion of the Node and the Lease: got Lease %+v, want none", l)
		}
		r.owner.Store(new(types.UID("u2")))
		clustertest.Advance(time.Second)
		r.checkLease(t, "1s after the creation of another Node", "u2", time.Second)
		r.owner.Store(new(types.UID("u3")))
		clustertest.Advance(11 * time.Second)
		r.checkLease(t, "after the Node was replaced", "u3", 11*time.Second)
	})
}

// TestRenewer_Conflict checks that the next renewal succeeds after another client has changed or
// deleted the Lease.
func TestRenewer_Conflict(t *testing.T) {
	runRenewer(t, nil, func(r *testRenewer) {
		r.Change(func() { r.Lease = r.Lease.DeepCopy(); r.Lease.ResourceVersion = "other" })
		clustertest.Advance(11 * time.Second)
		if r.stored().ResourceVersion == "other" {
			t.Error("11s after another client changed the Lease: got no renewal, want one")
		}
		r.Change(func() { r.Lease = nil })
		clustertest.Advance(11 * time.Second)
		r.checkLease(t, "11s after the deletion of the Lease", "u1", 11*time.Second)
		if _, failures := r.takeReports(); failures > 0 {
			t.Errorf("got %d reported failures, want none", failures)
		}
	})
}

// TestRenewer_Timeouts checks that podd closes its connections after each timeout of a request except the
// first of consecutive timeouts.
func TestRenewer_Timeouts(t *testing.T) {
	var timeouts atomic.Int32 // number of requests that still have to time out
	prepare := func(r *testRenewer) {
		r.Fault = func(q *http.Request) (*http.Response, error) {
			if timeouts.Add(-1) >= 0 {
				<-q.Context().Done()
				return nil, q.Context().Err()
			}
			return nil, nil
		}
	}
	runRenewer(t, prepare, func(r *testRenewer) {
		for n, want := range []int32{0, 0, 1, 2} {
			timeouts.Store(int32(n))
			r.closed.Store(0)
			clustertest.Advance(time.Minute)
			if got := r.closed.Load(); got != want {
				t.Errorf("%d consecutive timeouts: got connections closed %d times, want %d times", n, got, want)
			}
		}
	})
}

// TestRenewer_Outage checks that podd reports each failure, waits for at most backoff.MaxWait between
// attempts, and renews the Lease after the outage. podd must keep its connections if the API server
// responds with errors.
func TestRenewer_Outage(t *testing.T) {
	for name, c := range map[string]struct {
		fault  func(*http.Request) (*http.Response, error)
		closes bool // podd closes its connections
	}{
		"unreachable": {func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }, true},
		"server error": {func(*http.Request) (*http.Response, error) {
			return clustertest.ErrorResponse(apierrors.NewInternalError(syscall.EIO)), nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			runRenewer(t, nil, func(r *testRenewer) {
				r.Change(func() { r.Fault = c.fault })
				clustertest.Advance(time.Minute)
				r.CountRequests()
				r.takeReports()
				r.closed.Store(0)
				clustertest.Advance(10 * time.Minute)
				n := r.CountRequests("PUT leases")
				if successes, failures := r.takeReports(); n[0] < 85 || n[0] > 86 || successes > 0 || failures != n[0] {
					t.Errorf("outage of ten minutes: got %d PUTs, %d successes, %d failures; want one PUT every 7s, each reported as a failure", n[0], successes, failures)
				}
				if got := r.closed.Load() > 0; got != c.closes {
					t.Errorf("during the outage: got connections closed %t, want %t", got, c.closes)
				}
				r.Change(func() { r.Fault = nil })
				clustertest.Advance(backoff.MaxWait)
				r.checkLease(t, "after the outage", "u1", backoff.MaxWait)
			})
		})
	}
}
