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

// isTimeout reports whether err means that a timeout derived from ctx has passed while ctx
// itself is not done.
func isTimeout(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}
