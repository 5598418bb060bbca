package cri

import (
	"context"
	"errors"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// UpdatePodCIDR sends the address range of pods to the runtime, which may generate its CNI
// configuration from this range. cidr contains one CIDR or two, separated by a comma. UpdatePodCIDR
// returns nil if the runtime does not implement UpdateRuntimeConfig, because such a runtime
// generates no CNI configuration.
func (c *Client) UpdatePodCIDR(ctx context.Context, cidr string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.UpdateRuntimeConfig, &api.UpdateRuntimeConfigRequest{
		RuntimeConfig: &api.RuntimeConfig{NetworkConfig: &api.NetworkConfig{PodCidr: cidr}},
	})
	if errors.Is(err, runtime.ErrUnimplemented) {
		return nil
	}
	return err
}

// A sentPodCIDR is an address range of pods that a NodeObserver has sent to the runtime.
type sentPodCIDR struct {
	cidr      string
	dialCount uint64 // number of the connection
	hasFailed bool   // whether the last attempt failed and the error was logged
}

// podCIDRTimeout limits one attempt to send the address range of pods. It is short because the state
// of the runtime is not observed during the attempt.
const podCIDRTimeout = 5 * time.Second

// syncPodCIDR sends the address range of pods to the runtime if it has changed, and after each new
// connection, because the runtime may have lost it in a restart. isNew reports whether the runtime
// was unreachable before. syncPodCIDR is called only if the runtime is reachable. After an error it
// tries again in the next call.
func (n *NodeObserver) syncPodCIDR(ctx context.Context, isNew bool) {
	if n.opts.PodCIDR == nil {
		return
	}
	cidr := n.opts.PodCIDR()
	isNew = isNew || n.sentCIDR.dialCount != n.queriedDialCount
	if cidr == "" || cidr == n.sentCIDR.cidr && !isNew && !n.sentCIDR.hasFailed {
		return
	}
	attempt, cancel := context.WithTimeout(ctx, podCIDRTimeout)
	defer cancel()
	err := n.client.UpdatePodCIDR(attempt, cidr)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil && (n.sentCIDR.cidr != cidr || n.sentCIDR.hasFailed):
		n.opts.Logger.Info("pod CIDR sent to the runtime", "podCIDR", cidr)
	case err != nil && !n.sentCIDR.hasFailed:
		n.opts.Logger.Warn("sending the pod CIDR to the runtime failed; trying again", "podCIDR", cidr, "err", err)
	}
	n.sentCIDR = sentPodCIDR{cidr, n.queriedDialCount, err != nil}
}
