package cri

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// A listing contains the sandboxes and containers of some or all pods, as the runtime lists
// them.
type listing struct{ sandboxes, containers []wireItem }

// list lists the pods in keys, or all pods if allPods is true. It lists containers before sandboxes.
// If a pod is created between the two lists, the pod appears as a sandbox without containers, which
// the barrier of the pod's worker handles. In the opposite order, the pod would appear as
// containers without a sandbox.
func (o *Observer) list(ctx context.Context, allPods bool, keys map[types.NamespacedName]struct{}) (listing, error) {
	var l listing
	if allPods {
		err := o.client.list(ctx, &l, nil)
		return l, err
	}
	for key := range keys {
		labels := map[string]string{runtime.LabelPodName: key.Name, runtime.LabelPodNamespace: key.Namespace}
		if err := o.client.list(ctx, &l, labels); err != nil {
			return listing{}, err
		}
	}
	return l, nil
}

// list adds the sandboxes and containers with these labels to l. If labels is nil, it adds
// all.
func (c *Client) list(ctx context.Context, l *listing, labels map[string]string) error {
	containers, err := c.listWire(ctx, api.RuntimeService_ListContainers_FullMethodName,
		&api.ListContainersRequest{Filter: &api.ContainerFilter{LabelSelector: labels}}, (*wireItem).readContainer)
	if err != nil {
		return err
	}
	sandboxes, err := c.listWire(ctx, api.RuntimeService_ListPodSandbox_FullMethodName,
		&api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{LabelSelector: labels}}, (*wireItem).readSandbox)
	if err != nil {
		return err
	}
	l.containers, l.sandboxes = append(l.containers, containers...), append(l.sandboxes, sandboxes...)
	return nil
}

// listWire makes one list call. It calls read for each item to decode the needed fields.
func (c *Client) listWire(ctx context.Context, method string, request any, read func(*wireItem) error) ([]wireItem, error) {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var l wireList
	if err := c.conn.Invoke(bounded, method, request, &l, grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(maxListSize)); err != nil {
		return nil, c.convertError(ctx, err)
	}
	for i := range l.items {
		if err := read(&l.items[i]); err != nil {
			return nil, fmt.Errorf("decoding the runtime's response to %s: %w", method, err)
		}
	}
	return l.items, nil
}
