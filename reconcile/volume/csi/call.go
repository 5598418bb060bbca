package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"podd/manifest/refs"
	"podd/reconcile/plugins"
)

// maxMessage is the maximum size in bytes of a response of a driver.
const maxMessage = 1 << 20

// A callError is the error of a call to a driver.
type callError struct {
	Driver, Method string
	Code           codes.Code
	// Uncertain reports whether the driver may still process the call or may have completed
	// the call.
	Uncertain bool
	text      string
}

func (e *callError) Error() string { return e.text }

// A notRegisteredError is the error for a driver that is not registered. Dir is the directory in
// which podd discovers the sockets of drivers.
type notRegisteredError struct{ Driver, Dir string }

func (e *notRegisteredError) Error() string {
	return fmt.Sprintf("driver name %s not found in the list of registered CSI drivers; start its node plugin on this node, with its socket in %s", e.Driver, e.Dir)
}

// A session is a connection to a driver for a single operation. Operations do not share
// connections, because a driver may recreate its socket at any time.
type session struct {
	driver    Driver
	o         *Options
	conn      *grpc.ClientConn
	node      csi.NodeClient
	method    string    // method of the last call, such as NodeStageVolume
	redactFor *refs.CSI // volume; its secrets are redacted in errors; may be nil
}

// openSession returns a session with a registered driver. The caller must close the session.
func (d *Drivers) openSession(name string) (*session, error) {
	d.mu.Lock()
	r := d.drivers[name]
	d.mu.Unlock()
	if r == nil {
		return nil, &notRegisteredError{name, d.registry()}
	}
	return d.connect(r.Driver)
}

func (d *Drivers) connect(to Driver) (*session, error) {
	s := &session{driver: to, o: &d.o}
	conn, err := plugins.Dial(to.Endpoint, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithMaxHeaderListSize(64<<10), grpc.WithUnaryInterceptor(s.observe))
	if err != nil {
		return nil, fmt.Errorf("connecting to driver %s at %s: %w", to.Name, to.Endpoint, err)
	}
	s.conn, s.node = conn, csi.NewNodeClient(conn)
	return s, nil
}

func (s *session) close() { _ = s.conn.Close() }

// observe is an interceptor that reports every call to Options.Called.
func (s *session) observe(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := time.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	s.method = method[strings.LastIndexByte(method, '/')+1:]
	if s.o.Called != nil {
		s.o.Called(s.driver.Name, method, status.Code(err).String(), time.Since(began))
	}
	return err
}

// call calls invoke with the timeout Options.CallTime. invoke makes a single call to the driver.
// If invoke succeeds, call runs checks, which check the response, and returns the first error.
func (s *session) call(ctx context.Context, invoke func(context.Context) error, checks ...func() error) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTime)
	defer cancel()
	if err := invoke(ctx); err != nil {
		return s.callError(ctx, err)
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// uncertain contains the codes with which a call fails while the driver may still process it.
var uncertain = []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted}

// callError returns the *callError for err, the gRPC error of a call.
func (s *session) callError(ctx context.Context, err error) error {
	e := &callError{Driver: s.driver.Name, Method: s.method, Code: status.Code(err)}
	e.Uncertain = slices.Contains(uncertain, e.Code)
	message := plugins.Bounded(volumeSecrets(s.redactFor).redact(status.Convert(err).Message()))
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		e.text = fmt.Sprintf("%s of driver %s was canceled because podd no longer needs the result", e.Method, e.Driver)
	case e.Code == codes.DeadlineExceeded:
		e.text = fmt.Sprintf("driver %s did not respond to %s within %s; check its node plugin", e.Driver, e.Method, s.o.CallTime)
	case e.Code == codes.Unavailable:
		e.text = fmt.Sprintf("driver %s cannot be reached at %s: %s; check its node plugin", e.Driver, s.driver.Endpoint, message)
	default:
		e.text = fmt.Sprintf("%s of driver %s: %s (%s)", e.Method, e.Driver, message, e.Code)
	}
	return e
}

// capabilities are the node service capabilities of a driver. podd queries them for each
// operation, because a driver may be replaced without a new registration.
type capabilities map[csi.NodeServiceCapability_RPC_Type]bool

func (s *session) capabilities(ctx context.Context) (capabilities, error) {
	can := capabilities{}
	err := s.call(ctx, func(ctx context.Context) error {
		r, err := s.node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
		for _, c := range r.GetCapabilities() {
			can[c.GetRpc().GetType()] = true
		}
		return err
	})
	return can, err
}

func (a capabilities) stage() bool  { return a[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] }
func (a capabilities) group() bool  { return a[csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP] }
func (a capabilities) expand() bool { return a[csi.NodeServiceCapability_RPC_EXPAND_VOLUME] }
func (a capabilities) stats() bool  { return a[csi.NodeServiceCapability_RPC_GET_VOLUME_STATS] }
func (a capabilities) condition() bool {
	return a[csi.NodeServiceCapability_RPC_VOLUME_CONDITION]
}
func (a capabilities) multiWriter() bool {
	return a[csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
}
