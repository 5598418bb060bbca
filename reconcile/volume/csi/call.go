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
	// IsUncertain reports whether the driver may still process the call or may have completed
	// the call.
	IsUncertain bool
	text        string
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
	driver     Driver
	o          *Options
	conn       *grpc.ClientConn
	nodeClient csi.NodeClient
	method     string          // method of the last call, such as NodeStageVolume
	redactFor  *refs.CSIVolume // volume whose secrets are redacted in errors; may be nil
}

// openSession opens a session with the registered driver of this name. The caller must close the
// session.
func (d *Drivers) openSession(name string) (*session, error) {
	r, driver := d.findDriver(name)
	if r == nil {
		return nil, &notRegisteredError{name, d.registryDir()}
	}
	return d.connect(driver)
}

// findDriver returns the registration of a driver and a copy of its Driver. r is nil if no driver with this
// name is registered.
func (d *Drivers) findDriver(name string) (r *registration, driver Driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r = d.drivers[name]; r != nil {
		driver = r.Driver
	}
	return r, driver
}

func (d *Drivers) connect(driver Driver) (*session, error) {
	s := &session{driver: driver, o: &d.o}
	conn, err := plugins.Dial(driver.Endpoint, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithMaxHeaderListSize(64<<10), grpc.WithUnaryInterceptor(s.intercept))
	if err != nil {
		return nil, fmt.Errorf("connecting to driver %s at %s: %w", driver.Name, driver.Endpoint, err)
	}
	s.conn, s.nodeClient = conn, csi.NewNodeClient(conn)
	return s, nil
}

func (s *session) close() { _ = s.conn.Close() }

// intercept implements grpc.UnaryClientInterceptor. It reports every call to Options.OnCall.
func (s *session) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := time.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	s.method = method[strings.LastIndexByte(method, '/')+1:]
	if s.o.OnCall != nil {
		s.o.OnCall(s.driver.Name, method, status.Code(err).String(), time.Since(began))
	}
	return err
}

// call calls invoke with the timeout Options.CallTimeout. invoke makes a single call to the driver.
// If invoke succeeds, call runs checks, which check the response, and returns the first error.
func (s *session) call(ctx context.Context, invoke func(context.Context) error, checks ...func() error) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
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

// uncertainCodes contains the gRPC codes after which the driver may still process the failed call.
var uncertainCodes = []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted}

// callError converts the gRPC error of a call to a *callError.
func (s *session) callError(ctx context.Context, err error) error {
	e := &callError{Driver: s.driver.Name, Method: s.method, Code: status.Code(err)}
	e.IsUncertain = slices.Contains(uncertainCodes, e.Code)
	message := plugins.TruncateText(volumeSecrets(s.redactFor).redact(status.Convert(err).Message()))
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		e.text = fmt.Sprintf("%s of driver %s was canceled because podd no longer needs the result", e.Method, e.Driver)
	case e.Code == codes.DeadlineExceeded:
		e.text = fmt.Sprintf("driver %s did not respond to %s within %s; check its node plugin", e.Driver, e.Method, s.o.CallTimeout)
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
	caps := capabilities{}
	err := s.call(ctx, func(ctx context.Context) error {
		r, err := s.nodeClient.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
		for _, c := range r.GetCapabilities() {
			caps[c.GetRpc().GetType()] = true
		}
		return err
	})
	return caps, err
}

func (a capabilities) supportsStaging() bool {
	return a[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME]
}
func (a capabilities) supportsGroup() bool {
	return a[csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP]
}
func (a capabilities) supportsExpansion() bool { return a[csi.NodeServiceCapability_RPC_EXPAND_VOLUME] }
func (a capabilities) supportsStats() bool     { return a[csi.NodeServiceCapability_RPC_GET_VOLUME_STATS] }
func (a capabilities) supportsMultiWriter() bool {
	return a[csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
}
