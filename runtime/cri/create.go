package cri

import (
	"context"
	"time"

	"google.golang.org/grpc"
)

// firstCreate is the deadline of the first call that create makes.
const firstCreate = 5 * time.Second

// create makes a call that creates an object, for at most limit. If a caller cancels a
// call, as when podd is killed, CRI-O continues it. Another call for the same name then
// waits until its own deadline, even if the first one ends before, and only the next call
// gets the result. So calls to CRI-O have a short deadline and are repeated. The deadline
// doubles, in case canceling does end the call.
func create[Q, R any](ctx context.Context, c *Client, limit time.Duration,
	call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	if !c.holdsCalls.Load() {
		return invoke(ctx, c, limit, call, request)
	}
	all, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for patience := firstCreate; ; patience *= 2 {
		bounded, cancel := context.WithTimeout(all, patience)
		response, err := call(bounded, request)
		repeat := err != nil && bounded.Err() != nil && all.Err() == nil
		cancel()
		if !repeat {
			return response, c.clean(ctx, err)
		}
	}
}
