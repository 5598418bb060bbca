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

// callTime is how long a plugin may take to answer, workTime how long when it does
// something to its devices, and connectTime to be there when it registers. The
// kubelet waits for PreStartContainer for 30 seconds, and else for ever.
const (
	callTime    = 30 * time.Second
	workTime    = 2 * time.Minute
	connectTime = 10 * time.Second
)

// client is one plugin that registered.
type client struct {
	resource string
	conn     *grpc.ClientConn
	api      v1beta1.DevicePluginClient
	options  *v1beta1.DevicePluginOptions
	slot     chan struct{} // capacity 1: it is asked one thing at a time
}

var _ device.Plugin = (*client)(nil)

// connect asks a plugin that has just registered for what it wants to be asked.
func connect(ctx context.Context, resource, socket string) (*client, error) {
	conn, err := plugins.Dial(socket)
	if err != nil {
		return nil, err
	}
	c := &client{resource: resource, conn: conn, api: v1beta1.NewDevicePluginClient(conn), slot: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if c.options, err = c.api.GetDevicePluginOptions(ctx, &v1beta1.Empty{}, grpc.WaitForReady(true)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("asking for its options at %s: %w", socket, plugins.Plain(err))
	}
	return c, nil
}

// Preferred implements device.Plugin.
func (c *client) Preferred(ctx context.Context, available, must []string, n int) (ids []string, err error) {
	if !c.options.GetGetPreferredAllocationAvailable() {
		return nil, nil
	}
	err = c.call(ctx, callTime, "which devices it prefers", func(ctx context.Context) error {
		r, err := c.api.GetPreferredAllocation(ctx, &v1beta1.PreferredAllocationRequest{ContainerRequests: []*v1beta1.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: int32(n),
		}}})
		if all := r.GetContainerResponses(); len(all) > 0 {
			ids = all[0].GetDeviceIDs()
		}
		return err
	})
	return ids, err
}

// Allocate implements device.Plugin.
func (c *client) Allocate(ctx context.Context, ids []string) (answer *v1beta1.ContainerAllocateResponse, err error) {
	err = c.call(ctx, workTime, "to allocate", func(ctx context.Context) error {
		r, err := c.api.Allocate(ctx, &v1beta1.AllocateRequest{ContainerRequests: []*v1beta1.ContainerAllocateRequest{{DevicesIds: ids}}})
		if all := r.GetContainerResponses(); len(all) == 1 {
			answer = all[0]
		}
		return err
	})
	return answer, err
}

// PreStart implements device.Plugin.
func (c *client) PreStart(ctx context.Context, ids []string) error {
	return c.call(ctx, workTime, "to prepare a start", func(ctx context.Context) error {
		_, err := c.api.PreStartContainer(ctx, &v1beta1.PreStartContainerRequest{DevicesIds: ids})
		return err
	})
}

// Prepares implements device.Plugin.
func (c *client) Prepares() bool { return c.options.GetPreStartRequired() }

// call asks when nobody else does, and waits for the answer for as long as limit;
// that others are asked before is not the plugin's fault.
func (c *client) call(ctx context.Context, limit time.Duration, what string, ask func(context.Context) error) error {
	select {
	case c.slot <- struct{}{}:
		defer func() { <-c.slot }()
	case <-ctx.Done():
		return fmt.Errorf("asking its plugin %s, after others: %w", what, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return unanswered(ctx, limit, what)
	}
	return fmt.Errorf("asking its plugin %s: %w", what, plugins.Plain(err))
}

// unanswered: the time is over, or nobody wants to know any more.
func unanswered(ctx context.Context, limit time.Duration, what string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("asking its plugin %s: %w", what, ctx.Err())
	}
	return fmt.Errorf("asking its plugin %s: it did not answer within %s", what, limit)
}
