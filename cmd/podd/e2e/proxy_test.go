//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A proxy forwards the CRI calls of a podd to its runtime and records them. With onCall, a test can delay
// calls or make them fail.
type proxy struct {
	backend *grpc.ClientConn
	server  *grpc.Server
	served  chan struct{}

	mu       sync.Mutex // guards all following fields
	calls    []call
	inFlight map[string]int // number of calls in the runtime, by method
	canceled []cancellation
	hook     func(moment, call) bool
	clients  []net.Conn // all connections that podd has opened
}

// A cancellation is a call that podd canceled before the runtime had responded, or that was in
// progress when podd exited.
type cancellation struct {
	method string
	at     time.Time
}

// A call is one CRI request of podd.
type call struct {
	Method  string // for example "RunPodSandbox"
	Nth     int    // position among the recorded calls of the same method, from 1
	request []byte
}

func (c call) String() string { return fmt.Sprintf("%s #%d", c.Method, c.Nth) }

// read decodes the request into a message.
func (c call) read(into proto.Message) error { return proto.Unmarshal(c.request, into) }

// A moment is a stage of a call.
type moment string

const (
	before     moment = "before"                    // the call has not reached the runtime
	during     moment = "during"                    // the runtime is executing the call
	after      moment = "after"                     // the runtime has responded, but podd has not received the response
	duringTerm moment = "during, podd gets SIGTERM" // like the moment during, but podd gets SIGTERM instead of SIGKILL
)

// throughProxy makes the daemon use its runtime through a proxy, which is stopped after podd.
func (d *daemon) throughProxy() *proxy {
	d.t.Helper()
	socket := filepath.Join(d.dir, "cri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		d.t.Fatal(err)
	}
	backend, err := grpc.NewClient(d.on.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		d.t.Fatal(err)
	}
	p := &proxy{backend: backend, served: make(chan struct{}), inFlight: map[string]int{}}
	p.server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(p.forward))
	go func() {
		defer close(p.served)
		_ = p.server.Serve(&proxyListener{listener, p}) // returns after Stop
	}()
	d.closers = append(d.closers, func() {
		p.server.Stop()
		<-p.served
		backend.Close()
		os.Remove(socket)
	})
	d.endpoint = "unix://" + socket
	return p
}

// A proxyListener records the connections of podd.
type proxyListener struct {
	net.Listener
	p *proxy
}

// Accept implements net.Listener.
func (l *proxyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.p.mu.Lock()
		defer l.p.mu.Unlock()
		l.p.clients = append(l.p.clients, conn)
	}
	return conn, err
}

// disconnect closes all connections of podd. podd can open new ones.
func (p *proxy) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.clients {
		conn.Close() // fails if the connection was closed before
	}
	p.clients = nil
}

// cancelTime is the maximum time for which the runtime continues to execute a call that was canceled.
const cancelTime = 5 * time.Second

// callsInRuntime returns the number of calls of these methods that the runtime may be executing.
// These are the calls without a response and the calls that were canceled during the last
// cancelTime.
func (p *proxy) callsInRuntime(methods ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range methods {
		n += p.inFlight[m]
	}
	p.canceled = slices.DeleteFunc(p.canceled, func(c cancellation) bool { return time.Since(c.at) > cancelTime })
	for _, c := range p.canceled {
		if slices.Contains(methods, c.method) {
			n++
		}
	}
	return n
}

// recordCancellation records that a call of a method was canceled now.
func (p *proxy) recordCancellation(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canceled = append(p.canceled, cancellation{method, time.Now()})
}

// onCall sets the function that the proxy calls at every moment of every CRI call, and discards the
// recorded calls. If the function returns true, the call does not continue and podd gets an error.
func (p *proxy) onCall(hook func(moment, call) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.hook = nil, hook
}

// recordedCalls returns all calls since the last onCall.
func (p *proxy) recordedCalls() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]call(nil), p.calls...)
}

// gracePeriods returns the timeouts of all StopContainer calls since the last onCall, in
// seconds.
func (p *proxy) gracePeriods(t testing.TB) (all []int64) {
	t.Helper()
	for _, c := range p.recordedCalls() {
		var stop cri.StopContainerRequest
		if c.Method != "StopContainer" {
			continue
		}
		if err := c.read(&stop); err != nil {
			t.Fatal(err)
		}
		all = append(all, stop.GetTimeout())
	}
	return all
}

// hasCalled reports whether podd has made a call since the last onCall.
func (p *proxy) hasCalled(c call) bool {
	return slices.ContainsFunc(p.recordedCalls(), func(was call) bool { return was.String() == c.String() })
}

// isStarting reports whether the runtime is starting a container.
func (p *proxy) isStarting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inFlight["StartContainer"] > 0
}

// addInFlight adds the parameter by to the number of calls of a method in the runtime.
func (p *proxy) addInFlight(method string, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight[method] += by
}

// recordCall adds a call to the record. It returns the call and the function that onCall has
// set.
func (p *proxy) recordCall(method string, request []byte) (call, func(moment, call) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := call{Method: path.Base(method), Nth: 1, request: request}
	for _, was := range p.calls {
		if was.Method == c.Method {
			c.Nth++
		}
	}
	p.calls = append(p.calls, c)
	if p.hook == nil {
		return c, func(moment, call) bool { return false }
	}
	return c, p.hook
}

var errStopped = errors.New("the test stopped this call")

// forward forwards one call: a request and any number of responses.
func (p *proxy) forward(_ any, podd grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(podd)
	var request []byte
	if err := podd.RecvMsg(&request); err != nil {
		return err
	}
	c, hook := p.recordCall(method, request)
	if hook(before, c) {
		return errStopped
	}
	p.addInFlight(c.Method, 1)
	defer p.addInFlight(c.Method, -1)
	ctx, cancel := context.WithCancel(podd.Context())
	defer cancel()
	runtime, err := p.backend.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := errors.Join(runtime.SendMsg(&request), runtime.CloseSend()); err != nil {
		return err
	}
	// The hook may kill podd and wait for its exit. Meanwhile this goroutine must receive the response
	// of the runtime, so the hook runs in another goroutine.
	hooked := make(chan struct{})
	go func() {
		defer close(hooked)
		hook(during, c)
	}()
	defer func() { <-hooked }()
	for {
		var reply []byte
		err := runtime.RecvMsg(&reply)
		if err != nil && podd.Context().Err() != nil {
			p.recordCancellation(c.Method)
		}
		if hook(after, c) {
			return errStopped
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := podd.SendMsg(&reply); err != nil {
			return err
		}
	}
}

// rawCodec passes messages through without decoding them.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

// Name returns "", as podd's codec does, because CRI-O accepts no other content type.
func (rawCodec) Name() string { return "" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
