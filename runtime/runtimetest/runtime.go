// Package runtimetest is a container runtime in memory, for tests of whoever
// calls one, and the contract that it and a real runtime both keep.
//
//	*cri.Client ── direct ─────────────┐
//	*cri.Client ── gRPC, bufconn ──────┼── faults, call log ── service ── machine
//	*cri.Client ── gRPC, unix socket ──┘
//
// There is one state machine and there are two faces to it. Runtime itself has
// the methods of *cri.Client and calls the machine in the caller's goroutine;
// Dial and Serve go through real gRPC. All of them run the real client code. A
// Runtime made inside a testing/synctest bubble lives by the bubble's clock;
// Serve alone uses the network and is for tests outside bubbles.
//
// It behaves as containerd does where podd can tell the difference: names are
// reserved until their object is removed, exits are 137 for a kill, a second
// stop signal is not sent, a removal is announced before it happens. TestRuntime
// holds it to that.
package runtimetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/cri"
)

// Options say what runtime to play. The zero value is a containerd 2.x.
type Options struct {
	// Version is what Version answers; "": "v2.4.2".
	Version string
	// NoEvents leaves GetContainerEvents out, as containerd 1.6 does.
	NoEvents bool
	// NoRuntimeConfig leaves RuntimeConfig out, as containerd 1.6 does; its
	// verbose Status then names the cgroup driver.
	NoRuntimeConfig bool
	// Driver is "cgroupfs" or "systemd"; "": cgroupfs.
	Driver string
	// Handlers are the runtime handlers beside the default one.
	Handlers []string
	// Timeout is that of the clients; zero: cri.DefaultTimeout.
	Timeout time.Duration
}

// Runtime is the runtime in memory. The embedded client calls it directly. It
// is safe for concurrent use.
type Runtime struct {
	*cri.Client
	options Options
	ended   context.Context // done when the test is over
	going   sync.WaitGroup  // calls that go on without their client

	mu         sync.Mutex // guards all following fields
	down       chan struct{}
	isDown     bool
	unready    string // why RuntimeReady is false; "" when it is true
	noNetwork  string // why NetworkReady is false; "" when it is true
	sequence   uint64
	names      map[string]string // reserved name -> id
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]*Image // present, by id
	remote     map[string]*Remote
	faults     []*fault
	onExec     func(container string, command []string) Program // nil: Parse
	calls      []Call
	feed       feed
}

// New returns an empty runtime that ends with the test: what hangs is let go.
func New(t testing.TB, o Options) *Runtime {
	ended, cancel := context.WithCancel(context.Background())
	r := &Runtime{
		options:    o,
		ended:      ended,
		down:       make(chan struct{}),
		names:      map[string]string{},
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*container{},
		images:     map[string]*Image{},
		remote:     map[string]*Remote{},
	}
	r.Client = cri.New(&directConn{r}, cri.Options{Endpoint: "/run/runtimetest.sock", Timeout: o.Timeout})
	t.Cleanup(func() {
		cancel()
		r.going.Wait()
		r.stopPrograms()
	})
	return r
}

// Down makes the runtime go away: calls and streams under way break, new ones
// find nobody. Containers run on.
func (r *Runtime) Down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDown {
		return
	}
	r.isDown = true
	close(r.down)
	r.feed.breakLocked()
}

// Up ends Down. What happened meanwhile was not announced.
func (r *Runtime) Up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDown {
		r.isDown, r.down = false, make(chan struct{})
	}
}

// Restart is Down and Up.
func (r *Runtime) Restart() {
	r.Down()
	r.Up()
}

// SetNetwork makes NetworkReady false for the reason given; "" makes it true.
func (r *Runtime) SetNetwork(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noNetwork = reason
}

// SetReady makes RuntimeReady false for the reason given; "" makes it true.
func (r *Runtime) SetReady(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unready = reason
}

// newIDLocked returns 64 hex digits that look random and are the same in every
// run.
func (r *Runtime) newIDLocked() string {
	r.sequence++
	sum := sha256.Sum256(fmt.Appendf(nil, "runtimetest %d", r.sequence))
	return hex.EncodeToString(sum[:])
}

// reserveLocked takes a name until it is freed, as containerd does.
func (r *Runtime) reserveLocked(kind, name, id string) error {
	if holder, taken := r.names[kind+name]; taken {
		return status.Errorf(codes.Unknown, "failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, holder)
	}
	r.names[kind+name] = id
	return nil
}

func (r *Runtime) freeLocked(kind, name string) { delete(r.names, kind+name) }

// service is the runtime as gRPC sees it.
type service struct {
	api.UnimplementedRuntimeServiceServer
	api.UnimplementedImageServiceServer
	*Runtime
}

func (r *Runtime) register(s grpc.ServiceRegistrar) {
	api.RegisterRuntimeServiceServer(s, &service{Runtime: r})
	api.RegisterImageServiceServer(s, &service{Runtime: r})
}

// missing is containerd's word for an object that is not there.
func missing(kind, id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}
