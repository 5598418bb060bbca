package cli

import (
	"context"
	"errors"
	"time"
)

// withTimeout is context.WithTimeout, except that a timeout of 0 is no limit.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// isTimeout reports whether err is the end of a timeout that was derived from ctx, and not
// the end of ctx.
func isTimeout(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}
