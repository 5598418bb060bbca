// Package plugintest implements a device plugin for tests, with the real protocol over
// real sockets.
package plugintest

import (
	"cmp"
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// A Plugin serves the devices of one resource. Its fields must be set before Start; Dir
// and Resource are required.
type Plugin struct {
	Dir      string // directory of the sockets
	Resource string
	Socket   string // file name of the plugin's socket; "" means a name that contains Resource
	Options  v1beta1.DevicePluginOptions
	// WaitsForDiscovery makes the plugin wait to be discovered in plugins_registry instead of
	// registering itself.
	WaitsForDiscovery bool
	// Type is the plugin type that a discovered plugin reports; "" means DevicePlugin.
	Type string
	// AllocateFunc returns the response to Allocate; nil means an empty response.
	AllocateFunc func(ids []string) (*v1beta1.ContainerAllocateResponse, error)
	// Prefer returns the preferred devices; nil means no preference.
	Prefer func(available, must []string, n int) []string

	v1beta1.UnsafeDevicePluginServer
	v1.UnsafeRegistrationServer

	server *grpc.Server
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex // guards all following fields
	devices []*v1beta1.Device
	changed chan struct{} // closed when devices change
	calls   []string
	status  *v1.RegistrationStatus
}

// Endpoint returns the file name of the plugin's socket.
func (p *Plugin) Endpoint() string {
	return cmp.Or(p.Socket, strings.ReplaceAll(p.Resource, "/", "_")+".sock")
}

// Start serves the plugin on its socket and registers it unless WaitsForDiscovery is set.
func (p *Plugin) Start() error {
	ln, err := net.Listen("unix", filepath.Join(p.Dir, p.Endpoint()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.server, p.cancel = grpc.NewServer(), cancel
	v1beta1.RegisterDevicePluginServer(p.server, p)
	v1.RegisterRegistrationServer(p.server, p)
	p.done.Go(func() { p.server.Serve(ln) })
	if p.WaitsForDiscovery {
		return nil
	}
	err = p.Register(ctx)
	// On a busy host, the node agent may not get the options of the plugin in time.
	for deadline := time.Now().Add(5 * time.Minute); isTimeout(err) && time.Now().Before(deadline); {
		err = p.Register(ctx)
	}
	if err != nil {
		p.Stop()
	}
	return err
}

// isTimeout reports whether err is the error of a registration during which the node agent did not get
// the options of the plugin in time.
func isTimeout(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to get device plugin options") && strings.Contains(err.Error(), context.DeadlineExceeded.Error())
}

// Stop stops the plugin immediately, as if the process were killed.
func (p *Plugin) Stop() {
	p.cancel()
	p.server.Stop()
	p.done.Wait()
}

// Register registers the plugin with the node agent.
func (p *Plugin) Register(ctx context.Context) error {
	return Register(ctx, p.Dir, &v1beta1.RegisterRequest{
		Version: v1beta1.Version, Endpoint: p.Endpoint(), ResourceName: p.Resource, Options: &p.Options,
	})
}

// Register sends a registration request to the node agent.
func Register(ctx context.Context, dir string, r *v1beta1.RegisterRequest) error {
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	_, err = v1beta1.NewRegistrationClient(conn).Register(ctx, r, grpc.WaitForReady(true))
	return err
}

// SetDevices sets the IDs of the plugin's devices. The prefix "-" marks an unhealthy device.
func (p *Plugin) SetDevices(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices = nil
	for _, id := range ids {
		d := &v1beta1.Device{ID: strings.TrimPrefix(id, "-"), Health: v1beta1.Healthy}
		if d.ID != id {
			d.Health = v1beta1.Unhealthy
		}
		p.devices = append(p.devices, d)
	}
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
}

// Calls returns the calls of the plugin, such as "Allocate a b".
func (p *Plugin) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Status returns the result of the registration that a discovered plugin received. It is nil if the
// plugin has received none yet.
func (p *Plugin) Status() *v1.RegistrationStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

func (p *Plugin) recordCall(call string, ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, strings.TrimSpace(call+" "+strings.Join(ids, " ")))
}

// GetInfo implements v1.RegistrationServer.
func (p *Plugin) GetInfo(context.Context, *v1.InfoRequest) (*v1.PluginInfo, error) {
	return &v1.PluginInfo{Type: cmp.Or(p.Type, v1.DevicePlugin), Name: p.Resource, SupportedVersions: []string{v1beta1.Version}}, nil
}

// NotifyRegistrationStatus implements v1.RegistrationServer.
func (p *Plugin) NotifyRegistrationStatus(_ context.Context, s *v1.RegistrationStatus) (*v1.RegistrationStatusResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = s
	return &v1.RegistrationStatusResponse{}, nil
}

// GetDevicePluginOptions implements v1beta1.DevicePluginServer.
func (p *Plugin) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &p.Options, nil
}

// ListAndWatch implements v1beta1.DevicePluginServer.
func (p *Plugin) ListAndWatch(_ *v1beta1.Empty, stream grpc.ServerStreamingServer[v1beta1.ListAndWatchResponse]) error {
	for {
		p.mu.Lock()
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		list, changed := &v1beta1.ListAndWatchResponse{Devices: p.devices}, p.changed
		p.mu.Unlock()
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// GetPreferredAllocation implements v1beta1.DevicePluginServer.
func (p *Plugin) GetPreferredAllocation(_ context.Context, r *v1beta1.PreferredAllocationRequest) (*v1beta1.PreferredAllocationResponse, error) {
	result := &v1beta1.PreferredAllocationResponse{}
	for _, c := range r.ContainerRequests {
		p.recordCall("Prefer", c.AvailableDeviceIDs)
		response := &v1beta1.ContainerPreferredAllocationResponse{}
		if p.Prefer != nil {
			response.DeviceIDs = p.Prefer(c.AvailableDeviceIDs, c.MustIncludeDeviceIDs, int(c.AllocationSize))
		}
		result.ContainerResponses = append(result.ContainerResponses, response)
	}
	return result, nil
}

// Allocate implements v1beta1.DevicePluginServer.
func (p *Plugin) Allocate(_ context.Context, r *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	result := &v1beta1.AllocateResponse{}
	for _, c := range r.ContainerRequests {
		p.recordCall("Allocate", c.DevicesIds)
		response := &v1beta1.ContainerAllocateResponse{}
		if p.AllocateFunc != nil {
			var err error
			if response, err = p.AllocateFunc(c.DevicesIds); err != nil {
				return nil, err
			}
		}
		result.ContainerResponses = append(result.ContainerResponses, response)
	}
	return result, nil
}

// PreStartContainer implements v1beta1.DevicePluginServer.
func (p *Plugin) PreStartContainer(_ context.Context, r *v1beta1.PreStartContainerRequest) (*v1beta1.PreStartContainerResponse, error) {
	p.recordCall("PreStart", r.DevicesIds)
	return &v1beta1.PreStartContainerResponse{}, nil
}
