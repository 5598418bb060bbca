// Package runtimetest implements an in-memory container runtime for tests, and the contract
// that it and real runtimes fulfill.
//
//	*cri.Client ── direct ─────────────┐
//	*cri.Client ── gRPC, bufconn ──────┼── faults, call log ── service ── machine
//	*cri.Client ── gRPC, unix socket ──┘
//
// There is one state machine with two interfaces. Runtime itself has the methods of *cri.Client and
// calls the state machine in the caller's goroutine; Dial and Serve use real gRPC. All of them use
// the code of *cri.Client. A Runtime created inside a testing/synctest bubble uses the bubble's
// clock. Only Serve uses the network and is for tests outside bubbles.
//
// A Runtime imitates the behavior of containerd on which podd relies. A name is reserved until its
// object is removed. The exit code is 137 after a kill. A second stop signal is not sent. The event
// of a removal is sent before the removal. If Options.CRIO is set, the Runtime behaves like CRI-O.
// If a name is taken, the existing object is returned. CreateContainer fails if the program cannot
// be started or the directory of the log does not exist. TestRuntime checks this behavior.
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

// Options select the runtime to imitate. The zero value is containerd 2.x.
type Options struct {
	// CRIO imitates CRI-O.
	CRIO bool
	// Version is the version that the call Version returns. "" means "1.36.3" if CRIO is set, and
	// otherwise "v2.4.2".
	Version string
	// NoEvents disables GetContainerEvents, as in containerd 1.6, and in CRI-O unless
	// enable_pod_events is set.
	NoEvents bool
	// NoRuntimeConfig disables RuntimeConfig, as in containerd 1.6; the verbose Status then
	// contains the cgroup driver.
	NoRuntimeConfig bool
	// CgroupDriver is "cgroupfs" or "systemd". "" means cgroupfs.
	CgroupDriver string
	// Handlers are the runtime handlers in addition to the default one.
	Handlers []string
	// Timeout is the timeout of the clients' calls. Zero means cri.DefaultTimeout.
	Timeout time.Duration
}

// A Runtime is an in-memory runtime. The embedded client calls it directly. It is safe for
// concurrent use.
type Runtime struct {
	*cri.Client
	options         Options
	testContext     context.Context // done when the test ends
	callsInProgress sync.WaitGroup  // calls in progress, also those whose client has canceled them

	mu             sync.Mutex    // guards all following fields
	disconnected   chan struct{} // Disconnect closes this channel
	isDown         bool
	networkFailure string // reason why NetworkReady is false; "" if it is true
	sequence       uint64
	names          map[string]string // IDs by reserved name
	sandboxes      map[string]*sandbox
	containers     map[string]*container
	images         map[string]*Image // images on the node, by ID
	remoteImages   map[string]*RemoteImage
	faults         []*fault
	onExec         func(container string, command []string) Program // nil means ParseProgram
	calls          []Call
	feed           feed

	exitFilesHidden bool // see HideExitFiles
}

// New returns an empty runtime. At the end of the test it is closed, and hanging calls return.
func New(t testing.TB, o Options) *Runtime {
	ended, cancel := context.WithCancel(context.Background())
	r := &Runtime{
		options:      o,
		testContext:  ended,
		disconnected: make(chan struct{}),
		names:        map[string]string{},
		sandboxes:    map[string]*sandbox{},
		containers:   map[string]*container{},
		images:       map[string]*Image{},
		remoteImages: map[string]*RemoteImage{},
	}
	r.Client = cri.New(&directConn{r}, cri.Options{Endpoint: "/run/runtimetest.sock", Timeout: o.Timeout})
	t.Cleanup(func() {
		cancel()
		r.callsInProgress.Wait()
		r.stopPrograms()
	})
	return r
}

// Disconnect makes the runtime unreachable until Reconnect is called. Calls and streams in progress
// fail, and so do new ones. Containers keep running.
func (r *Runtime) Disconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDown {
		return
	}
	r.isDown = true
	close(r.disconnected)
	r.feed.breakLocked()
}

// Reconnect makes the runtime reachable again. No events are sent for the changes since Disconnect.
func (r *Runtime) Reconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDown {
		r.isDown, r.disconnected = false, make(chan struct{})
	}
}

// Restart calls Disconnect and Reconnect.
func (r *Runtime) Restart() {
	r.Disconnect()
	r.Reconnect()
}

// SetNetworkFailure sets the condition NetworkReady to false with the given reason. "" sets it to
// true.
func (r *Runtime) SetNetworkFailure(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.networkFailure = reason
}

// newIDLocked returns an ID of 64 hex digits. The IDs look random but are the same in every
// run.
func (r *Runtime) newIDLocked() string {
	r.sequence++
	sum := sha256.Sum256(fmt.Appendf(nil, "runtimetest %d", r.sequence))
	return hex.EncodeToString(sum[:])
}

// reserveNameLocked reserves a name for the object with this ID until releaseNameLocked is called.
// If the name is taken, containerd returns an error. CRI-O waits until the timeout of the call,
// even if the call that reserved the name has ended. The lock is not held while this function
// waits.
func (r *Runtime) reserveNameLocked(ctx context.Context, kind, name, id string) error {
	if holder, taken := r.names[kind+name]; taken {
		if r.options.CRIO {
			r.mu.Unlock()
			<-ctx.Done()
			r.mu.Lock()
			return ctx.Err()
		}
		return status.Errorf(codes.Unknown, "failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, holder)
	}
	r.names[kind+name] = id
	return nil
}

func (r *Runtime) releaseNameLocked(kind, name string) { delete(r.names, kind+name) }

// service implements the gRPC services of the runtime.
type service struct {
	api.UnimplementedRuntimeServiceServer
	api.UnimplementedImageServiceServer
	*Runtime
}

func (r *Runtime) register(s grpc.ServiceRegistrar) {
	api.RegisterRuntimeServiceServer(s, &service{Runtime: r})
	api.RegisterImageServiceServer(s, &service{Runtime: r})
}

// notFoundError returns containerd's error for an object that does not exist.
func notFoundError(kind, id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}
