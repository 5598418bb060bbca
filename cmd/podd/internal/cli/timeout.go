package cli

import (
	"context"
	"errors"
	"time"
)

// withTimeout is like context.WithTimeout, but a timeout of 0 means no limit.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// isTimeout reports whether err is the error of a timeout that withTimeout has added to ctx. It
// returns false if ctx itself is done.
func isTimeout(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}
