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

	"podd/manifest"
	"podd/reconcile/plugins"
)

// mostSaid bounds an answer of a driver.
const mostSaid = 1 << 20

// Error is what came of a call of a driver.
type Error struct {
	Driver, Method string
	Code           codes.Code
	// Uncertain says that the driver may still be at it, or have done it.
	Uncertain bool
	text      string
}

func (e *Error) Error() string { return e.text }

// NotRegistered is the error of what needs a driver that is not there.
type NotRegistered struct{ Driver, Dir string }

func (e *NotRegistered) Error() string {
	return fmt.Sprintf("driver name %s not found in the list of registered CSI drivers; start its node plugin on this machine, whose socket is looked for in %s", e.Driver, e.Dir)
}

// session is a connection to a driver for as long as one thing takes. There is none
// beside: the socket at an endpoint may be made anew at any time.
type session struct {
	driver Driver
	o      *Options
	conn   *grpc.ClientConn
	node   csi.NodeClient
	method string        // of the call that was made last
	told   *manifest.CSI // whose secrets no message repeats; nil: there are none
}

// reach is a session with a driver that is registered.
func (d *Drivers) reach(name string) (*session, error) {
	d.mu.Lock()
	r := d.drivers[name]
	d.mu.Unlock()
	if r == nil {
		return nil, &NotRegistered{name, d.registry()}
	}
	return d.connect(r.Driver)
}

func (d *Drivers) connect(to Driver) (*session, error) {
	s := &session{driver: to, o: &d.o}
	conn, err := plugins.Dial(to.Endpoint, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostSaid)),
		grpc.WithMaxHeaderListSize(64<<10), grpc.WithUnaryInterceptor(s.observe))
	if err != nil {
		return nil, fmt.Errorf("reaching driver %s at %s: %w", to.Name, to.Endpoint, err)
	}
	s.conn, s.node = conn, csi.NewNodeClient(conn)
	return s, nil
}

func (s *session) close() { _ = s.conn.Close() }

// observe tells of every call.
func (s *session) observe(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := time.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	s.method = method[strings.LastIndexByte(method, '/')+1:]
	if s.o.Called != nil {
		s.o.Called(s.driver.Name, method, status.Code(err).String(), time.Since(began))
	}
	return err
}

// call has ask make one call, for as long as that may take, and then look at what
// it brought.
func (s *session) call(ctx context.Context, ask func(context.Context) error, look ...func() error) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTime)
	defer cancel()
	if err := ask(ctx); err != nil {
		return s.failed(ctx, err)
	}
	for _, l := range look {
		if err := l(); err != nil {
			return err
		}
	}
	return nil
}

// uncertain are the codes of calls that the driver may still be at.
var uncertain = []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted}

func (s *session) failed(ctx context.Context, err error) error {
	e := &Error{Driver: s.driver.Name, Method: s.method, Code: status.Code(err)}
	e.Uncertain = slices.Contains(uncertain, e.Code)
	said := plugins.Bounded(secretsOf(s.told).redact(status.Convert(err).Message()))
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		e.text = fmt.Sprintf("%s of driver %s was given up: podd wants it no more", e.Method, e.Driver)
	case e.Code == codes.DeadlineExceeded:
		e.text = fmt.Sprintf("driver %s did not answer %s within %s; see to its node plugin", e.Driver, e.Method, s.o.CallTime)
	case e.Code == codes.Unavailable:
		e.text = fmt.Sprintf("driver %s cannot be reached at %s: %s; see to its node plugin", e.Driver, s.driver.Endpoint, said)
	default:
		e.text = fmt.Sprintf("%s of driver %s: %s (%s)", e.Method, e.Driver, said, e.Code)
	}
	return e
}

// able is what a driver can do on a machine. It is asked each time: a driver may
// have been exchanged under its registration.
type able map[csi.NodeServiceCapability_RPC_Type]bool

func (s *session) able(ctx context.Context) (able, error) {
	can := able{}
	err := s.call(ctx, func(ctx context.Context) error {
		r, err := s.node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
		for _, c := range r.GetCapabilities() {
			can[c.GetRpc().GetType()] = true
		}
		return err
	})
	return can, err
}

func (a able) stage() bool { return a[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] }
func (a able) group() bool { return a[csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP] }
func (a able) grow() bool  { return a[csi.NodeServiceCapability_RPC_EXPAND_VOLUME] }
func (a able) stats() bool { return a[csi.NodeServiceCapability_RPC_GET_VOLUME_STATS] }
func (a able) condition() bool {
	return a[csi.NodeServiceCapability_RPC_VOLUME_CONDITION]
}
func (a able) multiWriter() bool {
	return a[csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
}
