package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/reconcile/device"
	"podd/reconcile/plugins"
)

// callTimeout is the timeout of most calls. deviceChangeTimeout is the timeout of calls that change
// devices. connectTimeout is the timeout for connecting to a plugin that registers. The kubelet
// waits 30 seconds for PreStartContainer and has no timeout for other calls.
const (
	callTimeout         = 30 * time.Second
	deviceChangeTimeout = 2 * time.Minute
	connectTimeout      = 10 * time.Second
)

// A client is a connection to a registered plugin.
type client struct {
	resource string
	conn     *grpc.ClientConn
	api      v1beta1.DevicePluginClient
	options  *v1beta1.DevicePluginOptions
	callSlot chan struct{} // capacity 1, because there is one call at a time
	// onAllocate is Server.OnAllocate.
	onAllocate func(resource string, duration time.Duration)
}

var _ device.Plugin = (*client)(nil)

// connect connects to a plugin that has just registered, and queries its options.
func connect(ctx context.Context, resource, socket string) (*client, error) {
	conn, err := plugins.Dial(socket)
	if err != nil {
		return nil, err
	}
	c := &client{resource: resource, conn: conn, api: v1beta1.NewDevicePluginClient(conn), callSlot: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if c.options, err = c.api.GetDevicePluginOptions(ctx, &v1beta1.Empty{}, grpc.WaitForReady(true)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("failed to get device plugin options from %s: %w", socket, plugins.PlainError(err)) // the tests of Kubernetes require this beginning
	}
	return c, nil
}

// PreferredDevices implements device.Plugin.
func (c *client) PreferredDevices(ctx context.Context, available, mustInclude []string, size int) (ids []string, err error) {
	if !c.options.GetGetPreferredAllocationAvailable() {
		return nil, nil
	}
	err = c.call(ctx, callTimeout, "GetPreferredAllocation", func(ctx context.Context) error {
		r, err := c.api.GetPreferredAllocation(ctx, &v1beta1.PreferredAllocationRequest{ContainerRequests: []*v1beta1.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: available, MustIncludeDeviceIDs: mustInclude, AllocationSize: int32(size),
		}}})
		if responses := r.GetContainerResponses(); len(responses) > 0 {
			ids = responses[0].GetDeviceIDs()
		}
		return err
	})
	return ids, err
}

// Allocate implements device.Plugin.
func (c *client) Allocate(ctx context.Context, ids []string) (res *v1beta1.ContainerAllocateResponse, err error) {
	err = c.call(ctx, deviceChangeTimeout, "Allocate", func(ctx context.Context) error {
		start := time.Now()
		r, err := c.api.Allocate(ctx, &v1beta1.AllocateRequest{ContainerRequests: []*v1beta1.ContainerAllocateRequest{{DevicesIds: ids}}})
		if c.onAllocate != nil {
			c.onAllocate(c.resource, time.Since(start))
		}
		if responses := r.GetContainerResponses(); len(responses) == 1 {
			res = responses[0]
		}
		return err
	})
	return res, err
}

// PreStart implements device.Plugin.
func (c *client) PreStart(ctx context.Context, ids []string) error {
	return c.call(ctx, deviceChangeTimeout, "PreStartContainer", func(ctx context.Context) error {
		_, err := c.api.PreStartContainer(ctx, &v1beta1.PreStartContainerRequest{DevicesIds: ids})
		return err
	})
}

// RequiresPreStart implements device.Plugin.
func (c *client) RequiresPreStart() bool { return c.options.GetPreStartRequired() }

// call waits for other calls to return and then calls invoke. limit is the timeout of invoke and
// does not include the wait. operation is the name of the call for errors.
func (c *client) call(ctx context.Context, limit time.Duration, operation string, invoke func(context.Context) error) error {
	select {
	case c.callSlot <- struct{}{}:
		defer func() { <-c.callSlot }()
	case <-ctx.Done():
		return fmt.Errorf("calling %s of the device plugin: waiting for other calls: %w", operation, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := invoke(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return timeoutError(ctx, limit, operation)
	}
	return fmt.Errorf("calling %s of the device plugin: %w", operation, plugins.PlainError(err))
}

// timeoutError returns the error for a call that timed out or was canceled.
func timeoutError(ctx context.Context, limit time.Duration, operation string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("calling %s of the device plugin: %w", operation, ctx.Err())
	}
	return fmt.Errorf("calling %s of the device plugin: no response within %s", operation, limit)
}
