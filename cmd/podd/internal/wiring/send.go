package wiring

import "context"

// IgnoreCanceled returns err, or nil if err is context.Canceled.
func IgnoreCanceled(err error) error {
	if err == context.Canceled {
		return nil
	}
	return err
}

// Send returns a function that sends to c unless ctx is done.
func Send[T any](ctx context.Context, c chan<- T) func(T) {
	return func(v T) {
		select {
		case c <- v:
		case <-ctx.Done():
		}
	}
}
