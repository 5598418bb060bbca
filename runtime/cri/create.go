package cri

import (
	"context"
	"time"

	"google.golang.org/grpc"
)

// firstCreateTimeout is the timeout of the first call that create makes to CRI-O.
const firstCreateTimeout = 5 * time.Second

// create makes a call that creates an object. It returns after at most limit.
//
// If a client cancels such a call or is killed, CRI-O continues the call. A second call for the
// same name then waits until its own deadline, even if the first call finishes earlier. Only the
// next call gets the result. Calls to CRI-O therefore have a short deadline and are repeated. The
// deadline doubles each time, because another runtime version may abort the creation when a call is
// canceled.
func create[Q, R any](ctx context.Context, c *Client, limit time.Duration,
	call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	if !c.isCRIO.Load() {
		return invoke(ctx, c, limit, call, request)
	}
	totalCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for timeout := firstCreateTimeout; ; timeout *= 2 {
		callCtx, cancel := context.WithTimeout(totalCtx, timeout)
		response, err := call(callCtx, request)
		mustRepeat := err != nil && callCtx.Err() != nil && totalCtx.Err() == nil
		cancel()
		if !mustRepeat {
			return response, c.convertError(ctx, err)
		}
	}
}
