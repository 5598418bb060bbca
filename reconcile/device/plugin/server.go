// Package plugin registers device plugins with a device.Manager. Plugins register with
// the kubelet's registration service, deviceplugin/v1beta1, or are discovered by package
// plugins.
//
//	plugin ──Register──▶ <root>/device-plugins/kubelet.sock
//	plugin ◀─ListAndWatch, Allocate, …── its own socket in the same directory
//
// When podd starts, it removes the sockets in device-plugins and creates kubelet.sock again. As
// with the kubelet, this makes plugins register again.
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
	"time"

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

// SocketName is the file name of the registration service's socket.
const SocketName = "kubelet.sock"

// Limits of plugins. Most hosts have one or two plugins, and their devices rarely change. A resource
// has several plugins while its plugin is updated without downtime.
const (
	maxPlugins            = 64
	maxPluginsPerResource = 4
	maxConns              = 64
	maxListsPerSecond     = 10
	maxIDLength           = 253
)

// A Server serves the registration of plugins. All exported fields except functions are required.
type Server struct {
	Dir     string // directory of the sockets
	Manager *device.Manager
	Log     *slog.Logger
	// OnRegistered is called with the resource of every plugin that was registered. It may be nil.
	OnRegistered func(resource string)
	// OnAllocate is called after each call of Allocate, which may have failed, with the duration of
	// the call. It may be nil. It may be called concurrently.
	OnAllocate func(resource string, duration time.Duration)

	v1beta1.UnsafeRegistrationServer

	mu        sync.Mutex                     // guards all following fields
	clients   map[string][]*registeredClient // by resource, in the order of their registration
	isStopped bool
	running   sync.WaitGroup
}

// A registeredClient is the connection to a registered plugin. The Server uses it until the
// connection fails or cancel is called.
type registeredClient struct {
	*client
	socket      string
	cancel      context.CancelFunc
	done        chan struct{} // closed when the client is no longer in use
	isDisplaced bool          // whether another plugin has replaced the client; valid after done is closed
}

// PrepareDir creates the directory of the sockets and removes old sockets from it.
func PrepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("creating the directory of device plugins: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing the directory of device plugins: %w", err)
	}
	for _, e := range entries {
		if e.Type() == os.ModeSocket {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("removing the sockets of earlier device plugins: %w", err)
	}
	return nil
}

// Serve serves the registration service on ln until ctx is done. It returns after all
// plugins are disconnected.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(64<<10), grpc.MaxConcurrentStreams(8), grpc.ConnectionTimeout(connectTimeout),
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10), grpc.MaxHeaderListSize(16<<10),
	)
	v1beta1.RegisterRegistrationServer(server, s)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err := server.Serve(netutil.LimitListener(ln, maxConns))
	s.stopAll()
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("serving the registration of device plugins: %w", err)
}

// stopAll disconnects all plugins and rejects new plugins. It returns when all plugins are
// disconnected.
func (s *Server) stopAll() {
	s.mu.Lock()
	s.isStopped = true
	for _, clients := range s.clients {
		for _, c := range clients {
			c.cancel()
		}
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Register implements v1beta1.RegistrationServer. It returns the result of the
// registration to the plugin.
func (s *Server) Register(ctx context.Context, r *v1beta1.RegisterRequest) (*v1beta1.Empty, error) {
	err := s.register(ctx, r)
	if err != nil {
		s.Log.Warn("registering a device plugin failed", "resource", r.GetResourceName(), "err", err)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &v1beta1.Empty{}, nil
}

func (s *Server) register(ctx context.Context, r *v1beta1.RegisterRequest) error {
	if !slices.Contains(v1beta1.SupportedVersions[:], r.GetVersion()) {
		return fmt.Errorf("the plugin uses version %q of the device plugin API; podd supports %q", r.GetVersion(), v1beta1.Version)
	}
	name := r.GetEndpoint()
	if name == "" || name == "." || name == ".." || name == SocketName || filepath.Base(name) != name {
		return fmt.Errorf("the endpoint %q of the plugin is not the name of a socket in the directory of %s", name, filepath.Join(s.Dir, SocketName))
	}
	_, err := s.connect(ctx, r.GetResourceName(), filepath.Join(s.Dir, name))
	return err
}

// connect connects to the plugin at a socket and makes it a plugin of a resource. It replaces an
// earlier plugin at the same socket.
func (s *Server) connect(ctx context.Context, resource, socket string) (*registeredClient, error) {
	if !manifest.IsExtendedResource(v1.ResourceName(resource)) {
		return nil, fmt.Errorf("the resource name %q of the plugin is not the name of an extended resource, <domain>/<name>", resource)
	}
	c, err := connect(ctx, resource, socket)
	if err != nil {
		return nil, err
	}
	c.onAllocate = s.OnAllocate
	ctx, cancel := context.WithCancel(context.Background())
	reg := &registeredClient{client: c, socket: socket, cancel: cancel, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.addLocked(reg); err != nil {
		cancel()
		c.conn.Close()
		return nil, err
	}
	s.Manager.Register(resource, c)
	s.Log.Info("device plugin registered", "resource", resource, "socket", socket)
	if s.OnRegistered != nil {
		s.OnRegistered(resource)
	}
	s.running.Go(func() {
		defer cancel()
		defer close(reg.done)
		s.run(ctx, reg)
	})
	return reg, nil
}

// addLocked adds a client, and disconnects the client that it displaces: the client of the same
// resource and socket, or the oldest client if the resource has maxPluginsPerResource. It returns an
// error if the server was stopped, or if there are maxPlugins. s.mu must be locked.
func (s *Server) addLocked(c *registeredClient) error {
	if s.isStopped {
		return errors.New("podd is shutting down")
	}
	clients := s.clients[c.resource]
	displaced := slices.IndexFunc(clients, func(other *registeredClient) bool { return other.socket == c.socket })
	if displaced < 0 && len(clients) >= maxPluginsPerResource {
		displaced = 0
	}
	if displaced < 0 && s.countPluginsLocked() >= maxPlugins {
		return fmt.Errorf("%d device plugins are already registered, which is the limit", maxPlugins)
	}
	if displaced >= 0 {
		clients[displaced].isDisplaced = true
		clients[displaced].cancel()
		clients = slices.Delete(clients, displaced, displaced+1)
	}
	if s.clients == nil {
		s.clients = map[string][]*registeredClient{}
	}
	s.clients[c.resource] = append(clients, c)
	return nil
}

// countPluginsLocked returns the number of registered plugins. s.mu must be locked.
func (s *Server) countPluginsLocked() (n int) {
	for _, clients := range s.clients {
		n += len(clients)
	}
	return n
}

// removeLocked removes a client unless it was displaced before. s.mu must be locked.
func (s *Server) removeLocked(c *registeredClient) {
	clients := slices.DeleteFunc(s.clients[c.resource], func(other *registeredClient) bool { return other == c })
	if len(clients) == 0 {
		delete(s.clients, c.resource)
		return
	}
	s.clients[c.resource] = clients
}

// run receives the lists of devices of a plugin and passes them to the Manager. When the connection
// ends, run removes the plugin.
func (s *Server) run(ctx context.Context, c *registeredClient) {
	err := s.watch(ctx, c)
	c.conn.Close()
	s.Manager.Unregister(c.resource, c.client)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(c)
	if ctx.Err() == nil {
		s.Log.Warn("connection to a device plugin lost; pods keep their devices", "resource", c.resource, "err", plugins.PlainError(err))
	}
}

func (s *Server) watch(ctx context.Context, c *registeredClient) error {
	stream, err := c.api.ListAndWatch(ctx, &v1beta1.Empty{})
	if err != nil {
		return err
	}
	pace, logged := rate.NewLimiter(maxListsPerSecond, maxListsPerSecond), 0
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		devices, invalidCount := validDevices(r.GetDevices())
		s.Manager.SetDevices(c.resource, c.client, devices)
		if invalidCount > 0 && invalidCount != logged {
			s.Log.Warn("ignoring devices of a device plugin, because their IDs are empty or too long", "resource", c.resource, "devices", invalidCount)
		}
		logged = invalidCount
		if err := pace.Wait(ctx); err != nil {
			return err
		}
	}
}

// validDevices returns the devices in list that have a valid ID. invalidCount is the number of
// devices with an invalid ID.
func validDevices(list []*v1beta1.Device) (devices []device.Device, invalidCount int) {
	devices = make([]device.Device, 0, len(list))
	for _, d := range list {
		if d.GetID() == "" || len(d.GetID()) > maxIDLength {
			invalidCount++
			continue
		}
		dev := device.Device{ID: d.GetID(), Healthy: d.GetHealth() == v1beta1.Healthy}
		for _, n := range d.GetTopology().GetNodes() {
			dev.NUMA = append(dev.NUMA, n.GetID())
		}
		devices = append(devices, dev)
	}
	return devices, invalidCount
}
