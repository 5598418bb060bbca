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

// life is podd in a cluster, with a time of its own.
type life struct {
	*fakeAPI
	cluster *Cluster
	t       *testing.T
	state   *server.Latest
	mu      sync.Mutex // guards said
	said    []string
	refused []Rejection // of late
	closed  func()      // every connection; nil: nothing is done
}

// alone runs a test of one life, which begins 2 s before; prepare may be nil.
func alone(t *testing.T, prepare func(*life, *Options), test func(*life)) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{fakeAPI: &fakeAPI{version: 1, service: "s1"}, t: t, state: server.NewLatest(&server.View{Revision: 1, NodeObject: machine()})}
		o := &Options{
			Kubeconfig: "/none", ContentType: "application/json", QPS: 50, Burst: 100, Node: "n1", Register: true,
			UpdateFrequency: 10 * time.Second, ReportFrequency: 5 * time.Minute, Lease: 40 * time.Second,
			Log:        slog.New(slog.DiscardHandler),
			OnProblem:  func(_ context.Context, why string) { l.mu.Lock(); l.said = append(l.said, why); l.mu.Unlock() },
			OnRejected: func(_ context.Context, all []Rejection) { l.mu.Lock(); l.refused = all; l.mu.Unlock() },
		}
		if prepare != nil {
			prepare(l, o)
		}
		c := &client{host: "https://api", close: func() {
			if l.closed != nil {
				l.closed()
			}
		}}
		if err := c.open(&rest.Config{Host: "http://api", Transport: l.fakeAPI, ContentConfig: rest.ContentConfig{ContentType: o.ContentType}}, o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.cluster = New(*o)
		l.cluster.state = l.state
		s, done := newProblemReporter(o), make(chan struct{})
		go s.run(ctx)
		go func() { defer close(done); l.cluster.runConnection(ctx, c, s, stamp(o.Kubeconfig)) }()
		l.after(2 * time.Second)
		test(l)
		cancel()
		<-done
		l.mu.Lock() // of the fake: end what it still waits for
		defer l.mu.Unlock()
		l.fakeAPI.mu.Lock()
		defer l.fakeAPI.mu.Unlock()
		l.cut()
	})
}

// after lets time pass.
func (l *life) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// with does something to the cluster.
func (l *life) with(f func()) {
	l.fakeAPI.mu.Lock()
	f()
	l.fakeAPI.mu.Unlock()
	synctest.Wait()
}

// heard is what users were told since it was asked last.
func (l *life) heard() (said []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	said, l.said = l.said, nil
	return said
}

// count is how often was asked for what since it was counted last.
func (l *life) count(what ...string) (n []int) {
	l.with(func() {
		for _, w := range what {
			n = append(n, len(slices.DeleteFunc(slices.Clone(l.asked), func(a string) bool { return a != w })))
		}
		l.asked = nil
	})
	return n
}

func (l *life) ready() v1.ConditionStatus {
	l.fakeAPI.mu.Lock()
	defer l.fakeAPI.mu.Unlock()
	if l.node == nil {
		return ""
	}
	return condition(l.t, l.node, v1.NodeReady).Status
}

func TestJoins(t *testing.T) {
	alone(t, nil, func(l *life) {
		if l.ready() != v1.ConditionTrue || l.lease == nil || l.lease.OwnerReferences[0].UID != l.node.UID || *l.lease.Spec.HolderIdentity != "n1" {
			t.Errorf("after 2s: got node %v, lease %v", l.node, l.lease)
		}
		if said := l.heard(); len(said) > 0 {
			t.Errorf("told %q", said)
		}
		// A view with the same machine is nothing new; another machine is sent at once.
		l.count()
		v := *l.state.View()
		v.Revision++
		l.state.Publish(&v)
		l.after(time.Second)
		if n := l.count("PATCH nodes"); n[0] != 0 {
			t.Errorf("nothing new: %d patches", n[0])
		}
		next, down := v, machine()
		down.Status.Conditions[1].Status = v1.ConditionFalse
		next.Revision, next.NodeObject = v.Revision+1, down
		l.state.Publish(&next)
		synctest.Wait()
		if l.ready() != v1.ConditionFalse {
			t.Error("a runtime that is gone is not told at once")
		}
	})
}

// TestAddressesFollow starts a host before DHCP: its Node gets an address when the
// host does, and another one at once when that changes.
func TestAddressesFollow(t *testing.T) {
	at := func(ip string) *v1.Node {
		n := machine()
		n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}, {Type: v1.NodeHostName, Address: "n1"}}
		return n
	}
	prepare := func(l *life, _ *Options) {
		l.state = server.NewLatest(&server.View{Revision: 1, NodeObject: at("127.0.0.1")})
	}
	alone(t, prepare, func(l *life) {
		for _, step := range []struct{ ip, want string }{{"", "n1"}, {"10.0.0.5", "10.0.0.5 n1"}, {"10.0.0.6", "10.0.0.6 n1"}} {
			if v := l.state.View(); step.ip != "" {
				next := *v
				next.Revision, next.NodeObject = v.Revision+1, at(step.ip)
				l.state.Publish(&next)
				l.after(time.Second)
			}
			var got []string
			l.with(func() {
				for _, a := range l.node.Status.Addresses {
					got = append(got, a.Address)
				}
			})
			if strings.Join(got, " ") != step.want {
				t.Errorf("with the address %q: the Node has %q, want %s", step.ip, got, step.want)
			}
		}
	})
}

func TestIdle(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.after(10 * time.Minute)
		l.count()
		l.after(time.Hour)
		n := l.count("PUT leases", "PATCH nodes", "WATCH nodes", "GET nodes", "GET leases", "POST nodes")
		if n[0] < 330 || n[0] > 360 || n[1] < 11 || n[1] > 13 || n[2] > 12 || n[3]+n[4]+n[5] > 0 {
			t.Errorf("in an hour: %v", n)
		}
	})
}

func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*http.Request) (*http.Response, error)
		says  string
	}{
		{"away", func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }, "cannot be reached: connection refused"},
		{"slow", func(q *http.Request) (*http.Response, error) { <-q.Context().Done(); return nil, q.Context().Err() }, "does not answer within 10s"},
		{"forbids", func(*http.Request) (*http.Response, error) {
			return refusal(apierrors.NewForbidden(nodesResource, "n1", nil)), nil
		}, "system:node:NAME"},
		{"forgets", func(*http.Request) (*http.Response, error) { return refusal(apierrors.NewUnauthorized("no")), nil }, "does not know who"},
		{"is ill", func(*http.Request) (*http.Response, error) {
			return refusal(apierrors.NewInternalError(syscall.EIO)), nil
		}, "answers 500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alone(t, nil, func(l *life) {
				l.with(func() { l.fault = c.fault; l.cut() })
				l.after(10 * time.Minute)
				said := l.heard()
				if len(said) != 1 || !strings.Contains(said[0], c.says) {
					t.Errorf("told %q, want once %q", said, c.says)
				}
				if n := l.count("GET nodes", "PUT leases", "PATCH nodes"); n[0]+n[1]+n[2] > 10*60 {
					t.Errorf("asked %v times in ten minutes", n)
				}
				// Meanwhile the cluster has given the node up.
				l.with(func() {
					lost := l.node.DeepCopy()
					lost.Status.Conditions[1].Status = v1.ConditionUnknown
					l.put(lost, "MODIFIED")
					l.fault = nil
				})
				// A request that hangs takes its 10 s.
				l.after(5*time.Second + map[bool]time.Duration{true: requestTime}[c.name == "slow"])
				if l.ready() != v1.ConditionTrue {
					t.Error("the status is not right 5s after the return")
				}
				l.after(10 * time.Second)
				if said := l.heard(); len(said) != 1 || said[0] != "" {
					t.Errorf("after the return: told %q", said)
				}
			})
		})
	}
}

// TestBrokenKubeconfig: the last that could be read counts until there is another that
// can be.
func TestBrokenKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	good := strings.Replace(kubeconfig, ", certificate-authority: ca.crt", "", 1)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	alone(t, func(_ *life, o *Options) { o.Kubeconfig = file }, func(l *life) {
		for _, broken := range []string{"", good[:60], kubeconfig} {
			write(broken)
			l.after(15 * time.Second)
			l.count()
			l.after(time.Minute)
			if n := l.count("PUT leases"); n[0] < 5 {
				t.Errorf("%q: the lease was renewed %d times", broken, n[0])
			}
			if said := l.heard(); len(said) > 1 || len(said) == 1 && !strings.Contains(said[0], file) {
				t.Errorf("%q: told %q", broken, said)
			}
		}
		write(good + "# another\n")
		l.after(15 * time.Second)
		l.count()
		l.after(time.Minute)
		if n := l.count("PUT leases"); n[0] > 0 {
			t.Error("a new one began no other life")
		}
	})
}

// TestSlowLease: one request that is late is no reason to make every connection anew.
func TestSlowLease(t *testing.T) {
	var late, closed atomic.Int32
	prepare := func(l *life, _ *Options) {
		l.closed = func() { closed.Add(1) }
		l.fault = func(q *http.Request) (*http.Response, error) {
			if strings.Contains(q.URL.Path, "/leases") && late.Add(-1) >= 0 {
				<-q.Context().Done()
				return nil, q.Context().Err()
			}
			return nil, nil
		}
	}
	alone(t, prepare, func(l *life) {
		for n, want := range []int32{0, 0, 1, 2} {
			late.Store(int32(n))
			closed.Store(0)
			l.after(time.Minute)
			if got := closed.Load(); got != want {
				t.Errorf("%d late in a row: closed %d times, want %d", n, got, want)
			}
		}
	})
}

// TestTroubleOfAnotherPart: what users were told is put right when it is over, though
// something else is of its kind.
func TestTroubleOfAnotherPart(t *testing.T) {
	var said []string
	s := newProblemReporter(&Options{Log: slog.New(slog.DiscardHandler), OnProblem: func(_ context.Context, why string) { said = append(said, why) }})
	forbids := func(what string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: what}, "n1", errors.New("no"))
	}
	for _, a := range []attempt{{ofLease, forbids("leases")}, {ofNode, forbids("nodes")}, {ofLease, nil}, {ofPods, forbids("pods")}, {ofNode, nil}, {ofPods, nil}} {
		s.update(t.Context(), a, noon)
	}
	if len(said) != 4 || !strings.Contains(said[0], "leases") || !strings.Contains(said[1], "nodes") || !strings.Contains(said[2], "pods") || said[3] != "" {
		t.Errorf("told %q", said)
	}
	long := apierrors.NewInternalError(errors.New(strings.Repeat("no\x1b[2J ", 1000)))
	if text := newProblem(long).text; len(text) > 2*maxMessage || strings.Contains(text, "\x1b") {
		t.Errorf("told %d bytes: %q", len(text), text)
	}
}

// Whoever deletes the Node of a podd that runs wants it gone.
func TestDeleted(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.with(func() { l.put(l.node, "DELETED"); l.lease = nil })
		l.after(time.Minute)
		if said := l.heard(); len(said) != 1 || !strings.Contains(said[0], "node n1 was deleted") || l.node != nil || l.lease != nil {
			t.Errorf("deleted: told %q, node %v, lease %v", said, l.node, l.lease)
		}
		l.with(func() { l.put(&v1.Node{}, "ADDED") })
		l.after(2 * time.Second)
		if said := l.heard(); l.ready() != v1.ConditionTrue || len(said) != 1 || said[0] != "" || l.lease == nil || l.lease.OwnerReferences[0].UID != l.node.UID {
			t.Errorf("made again: told %q, node %v, lease %v", said, l.node, l.lease)
		}
	})
}

func TestNotRegistered(t *testing.T) {
	prepare := func(_ *life, o *Options) { o.Register = false }
	alone(t, prepare, func(l *life) {
		if said := l.heard(); len(said) != 1 || !strings.Contains(said[0], "--register-node=false") || l.node != nil {
			t.Errorf("told %q, node %v", said, l.node)
		}
		l.with(func() { l.put(&v1.Node{}, "ADDED") })
		l.after(2 * time.Second)
		if l.ready() != v1.ConditionTrue || l.lease == nil {
			t.Errorf("got node %v, lease %v", l.node, l.lease)
		}
	})
}

// Another that writes the lease or takes it away costs no time.
func TestLeaseOfOthers(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.with(func() { l.lease = l.lease.DeepCopy(); l.lease.ResourceVersion = "other" })
		l.after(11 * time.Second)
		l.with(func() {
			if l.lease.ResourceVersion == "other" {
				t.Error("changed: not renewed")
			}
			l.lease = nil
		})
		l.after(11 * time.Second)
		if l.lease == nil || len(l.heard()) > 0 {
			t.Error("taken away: not made again")
		}
	})
}

// A proxy that ends every watch at once is not asked without end.
func TestShortWatches(t *testing.T) {
	prepare := func(l *life, o *Options) {
		o.Register = false
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") != "" {
				return &http.Response{StatusCode: 200, Header: jsonType, Body: http.NoBody}, nil
			}
			l.fakeAPI.mu.Lock()
			defer l.fakeAPI.mu.Unlock()
			if strings.Contains(q.URL.Path, "/pods") {
				return l.podList(), nil
			}
			return l.nodes(q.Method, nil), nil
		}
	}
	alone(t, prepare, func(l *life) {
		l.count()
		l.after(10 * time.Minute)
		if n := l.count("WATCH nodes"); n[0] > 1000 {
			t.Errorf("%d watches in ten minutes", n[0])
		}
	})
}
