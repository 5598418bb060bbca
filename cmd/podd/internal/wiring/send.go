package wiring

import "context"

// IgnoreCanceled returns err, or nil if err is context.Canceled.
func IgnoreCanceled(err error) error {
	if err == context.Canceled {
		return nil
	}
	return err
}

// NewSender returns a function that sends a value to c. The function blocks until the value
// is received or ctx is done.
func NewSender[T any](ctx context.Context, c chan<- T) func(T) {
	return func(v T) {
		select {
		case c <- v:
		case <-ctx.Done():
		}
	}
}
