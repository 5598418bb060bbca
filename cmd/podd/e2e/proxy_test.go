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

// proxy stands between a podd and its runtime: it passes every call on, keeps
// a record, and lets a test meddle.
type proxy struct {
	backend *grpc.ClientConn
	server  *grpc.Server
	served  chan struct{}

	mu       sync.Mutex // guards all following fields
	calls    []call
	flying   map[string]int // calls that the runtime is at, by method
	canceled []cancellation
	meet     func(moment, call) bool
	clients  []net.Conn // all that podd has opened
}

// A cancellation is a call that podd canceled, or that ended with podd, before the runtime
// had responded.
type cancellation struct {
	method string
	at     time.Time
}

// call is one request of podd.
type call struct {
	Method  string // "RunPodSandbox"
	Nth     int    // of its method, from 1
	request []byte
}

func (c call) String() string { return fmt.Sprintf("%s #%d", c.Method, c.Nth) }

// read decodes the request.
func (c call) read(into proto.Message) error { return proto.Unmarshal(c.request, into) }

// moment is where a call is.
type moment string

const (
	before moment = "before" // it has not reached the runtime
	amid   moment = "amid"   // the runtime is at it
	after  moment = "after"  // the runtime has answered, podd does not know
	asked  moment = "asked"  // as amid, and podd is asked to end instead of killed
)

// throughProxy has the daemon reach its runtime through a proxy, which ends
// after podd.
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
	p := &proxy{backend: backend, served: make(chan struct{}), flying: map[string]int{}}
	p.server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(p.pass))
	go func() {
		defer close(p.served)
		_ = p.server.Serve(&proxyListener{listener, p}) // ends with Stop
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

// disconnect closes all connections of podd, which may open new ones.
func (p *proxy) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.clients {
		conn.Close() // fails if it was closed before
	}
	p.clients = nil
}

// cancelTime is the time for which the runtime may execute a call that was canceled.
const cancelTime = 5 * time.Second

// inRuntime returns the number of calls of these methods that the runtime may be executing:
// those without a response and those that were canceled in the last cancelTime.
func (p *proxy) inRuntime(methods ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range methods {
		n += p.flying[m]
	}
	p.canceled = slices.DeleteFunc(p.canceled, func(c cancellation) bool { return time.Since(c.at) > cancelTime })
	for _, c := range p.canceled {
		if slices.Contains(methods, c.method) {
			n++
		}
	}
	return n
}

func (p *proxy) noteCancellation(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canceled = append(p.canceled, cancellation{method, time.Now()})
}

// onCall has meet called at every moment of every call. If it returns true,
// the call goes no further.
func (p *proxy) onCall(meet func(moment, call) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.meet = nil, meet
}

// record is every call since the last onCall.
func (p *proxy) record() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]call(nil), p.calls...)
}

// graces are what the runtime was given to stop containers since then, in seconds.
func (p *proxy) graces(t testing.TB) (all []int64) {
	t.Helper()
	for _, c := range p.record() {
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

// made tells whether a call was made since the last onCall.
func (p *proxy) made(c call) bool {
	return slices.ContainsFunc(p.record(), func(was call) bool { return was.String() == c.String() })
}

// starting says that the runtime is just starting a container.
func (p *proxy) starting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flying["StartContainer"] > 0
}

func (p *proxy) fly(method string, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying[method] += by
}

func (p *proxy) note(method string, request []byte) (call, func(moment, call) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := call{Method: path.Base(method), Nth: 1, request: request}
	for _, was := range p.calls {
		if was.Method == c.Method {
			c.Nth++
		}
	}
	p.calls = append(p.calls, c)
	if p.meet == nil {
		return c, func(moment, call) bool { return false }
	}
	return c, p.meet
}

var errMeddled = errors.New("the test stopped this call")

// pass serves one call: a request, any number of replies.
func (p *proxy) pass(_ any, podd grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(podd)
	var request []byte
	if err := podd.RecvMsg(&request); err != nil {
		return err
	}
	c, meet := p.note(method, request)
	if meet(before, c) {
		return errMeddled
	}
	p.fly(c.Method, 1)
	defer p.fly(c.Method, -1)
	ctx, cancel := context.WithCancel(podd.Context())
	defer cancel()
	runtime, err := p.backend.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := errors.Join(runtime.SendMsg(&request), runtime.CloseSend()); err != nil {
		return err
	}
	// It must not wait for podd's end: podd's end is what it is about.
	met := make(chan struct{})
	go func() {
		defer close(met)
		meet(amid, c)
	}()
	defer func() { <-met }()
	for {
		var reply []byte
		err := runtime.RecvMsg(&reply)
		if err != nil && podd.Context().Err() != nil {
			p.noteCancellation(c.Method)
		}
		if meet(after, c) {
			return errMeddled
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

// rawCodec leaves messages as they are on the wire.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

// Name returns "", as podd's own does: CRI-O accepts no other content type.
func (rawCodec) Name() string { return "" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
