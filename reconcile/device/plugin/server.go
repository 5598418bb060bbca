// Package plugin is how device plugins reach podd: the kubelet's registration
// service, deviceplugin/v1beta1, and sockets that package plugins finds. They are
// clients of a device.Ledger.
//
//	plugin ──Register──▶ <root>/device-plugins/kubelet.sock
//	plugin ◀─ListAndWatch, Allocate, …── its own socket beside it
//
// A podd that starts removes the sockets and makes its own anew; that tells
// plugins, as with the kubelet, to register once more.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/plugins"
)

// Socket is the name of the registration service's in its directory.
const Socket = "kubelet.sock"

// Bounds on what plugins can have podd do: most of any machine have one or two,
// and a list of devices changes with the machine.
const (
	mostResources = 64
	mostConns     = 64
	listsPerSec   = 10
	longestID     = 253
)

// Server lets plugins register. All fields but Taken are required.
type Server struct {
	Dir    string // of the sockets
	Ledger *device.Ledger
	Log    *slog.Logger
	// Taken is told of every plugin that is registered; nil: nobody is.
	Taken func(resource string)

	v1beta1.UnsafeRegistrationServer

	mu      sync.Mutex             // guards all following fields
	clients map[string]*registered // by resource
	ended   bool
	running sync.WaitGroup
}

// registered is a client that is followed until its cancel is called.
type registered struct {
	*client
	cancel    context.CancelFunc
	followed  chan struct{} // closed when it is followed no more
	displaced bool          // by another of its resource; may be read when followed is closed
}

// Prepare makes a directory of sockets and removes those in it.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("making the directory of the device plugins: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for old sockets of device plugins: %w", err)
	}
	for _, e := range entries {
		if e.Type() == os.ModeSocket {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("removing old sockets of device plugins: %w", err)
	}
	return nil
}

// Serve answers on ln until ctx is done, and returns when no plugin is followed any
// more.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(64<<10), grpc.MaxConcurrentStreams(8), grpc.ConnectionTimeout(connectTime),
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10), grpc.MaxHeaderListSize(16<<10),
	)
	v1beta1.RegisterRegistrationServer(server, s)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err := server.Serve(netutil.LimitListener(ln, mostConns))
	s.end()
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("serving the registration of device plugins: %w", err)
}

// end gives every plugin up and lets no other come.
func (s *Server) end() {
	s.mu.Lock()
	s.ended = true
	for _, c := range s.clients {
		c.cancel()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Register implements the service: what a plugin is told is what came of it.
func (s *Server) Register(ctx context.Context, r *v1beta1.RegisterRequest) (*v1beta1.Empty, error) {
	err := s.register(ctx, r)
	if err != nil {
		s.Log.Warn("a device plugin is not registered", "resource", r.GetResourceName(), "err", err)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &v1beta1.Empty{}, nil
}

func (s *Server) register(ctx context.Context, r *v1beta1.RegisterRequest) error {
	if !slices.Contains(v1beta1.SupportedVersions[:], r.GetVersion()) {
		return fmt.Errorf("it speaks version %q; podd speaks %q", r.GetVersion(), v1beta1.Version)
	}
	name := r.GetEndpoint()
	if name == "" || name == "." || name == ".." || name == Socket || filepath.Base(name) != name {
		return fmt.Errorf("its endpoint %q is not the name of a socket beside %s", name, filepath.Join(s.Dir, Socket))
	}
	_, err := s.connect(ctx, r.GetResourceName(), filepath.Join(s.Dir, name))
	return err
}

// connect makes the plugin at a socket that of a resource, in place of another.
func (s *Server) connect(ctx context.Context, resource, socket string) (*registered, error) {
	if !manifest.IsExtended(v1.ResourceName(resource)) {
		return nil, fmt.Errorf("its resource %q is not <domain>/<name> of a domain of its own", resource)
	}
	c, err := connect(ctx, resource, socket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	now := &registered{client: c, cancel: cancel, followed: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.clients[resource]
	if err := s.roomLocked(before); err != nil {
		cancel()
		c.conn.Close()
		return nil, err
	}
	if before != nil {
		before.displaced = true
		before.cancel()
	}
	if s.clients == nil {
		s.clients = map[string]*registered{}
	}
	s.clients[resource] = now
	s.Ledger.Serve(resource, c)
	s.Log.Info("a device plugin is registered", "resource", resource, "socket", socket)
	if s.Taken != nil {
		s.Taken(resource)
	}
	s.running.Go(func() {
		defer cancel()
		defer close(now.followed)
		s.follow(ctx, now)
	})
	return now, nil
}

func (s *Server) roomLocked(before *registered) error {
	switch {
	case s.ended:
		return errors.New("podd takes no plugins any more")
	case before == nil && len(s.clients) >= mostResources:
		return fmt.Errorf("%d resources are registered already", mostResources)
	}
	return nil
}

// follow takes a plugin's lists until it is gone.
func (s *Server) follow(ctx context.Context, c *registered) {
	err := s.watch(ctx, c)
	c.conn.Close()
	s.Ledger.Leave(c.resource, c.client)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[c.resource] == c {
		delete(s.clients, c.resource)
	}
	if ctx.Err() == nil {
		s.Log.Warn("a device plugin is gone; who has its devices keeps them", "resource", c.resource, "err", plugins.Plain(err))
	}
}

func (s *Server) watch(ctx context.Context, c *registered) error {
	stream, err := c.api.ListAndWatch(ctx, &v1beta1.Empty{})
	if err != nil {
		return err
	}
	pace, said := rate.NewLimiter(listsPerSec, listsPerSec), 0
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		all, refused := devices(r.GetDevices())
		s.Ledger.Update(c.resource, c.client, all)
		if refused > 0 && refused != said {
			s.Log.Warn("devices without an ID, or with one that is too long, are not given out", "resource", c.resource, "devices", refused)
		}
		said = refused
		if err := pace.Wait(ctx); err != nil {
			return err
		}
	}
}

// devices are those of a list that have an ID, and how many others there are.
func devices(listed []*v1beta1.Device) (all []device.Device, refused int) {
	all = make([]device.Device, 0, len(listed))
	for _, d := range listed {
		if d.GetID() == "" || len(d.GetID()) > longestID {
			refused++
			continue
		}
		one := device.Device{ID: d.GetID(), Healthy: d.GetHealth() == v1beta1.Healthy}
		for _, n := range d.GetTopology().GetNodes() {
			one.NUMA = append(one.NUMA, n.GetID())
		}
		all = append(all, one)
	}
	return all, refused
}
