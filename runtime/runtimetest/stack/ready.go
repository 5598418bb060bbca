package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pollInterval is the interval of checks for a condition whose changes are not signaled.
const pollInterval = 10 * time.Millisecond

// dial connects to the CRI of the stack. While the runtime does not listen, calls fail at once,
// and gRPC retries the connection every few milliseconds.
func (s *Stack) dial() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(s.Endpoint(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: pollInterval, Multiplier: 1, MaxDelay: pollInterval},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.Endpoint(), err)
	}
	return conn, nil
}

// errExited is the error of waitUntil if the runtime exits.
var errExited = errors.New("the runtime has exited")

// waitUntil calls condition once per pollInterval until condition returns true. waitUntil returns
// an error if the runtime exits or ctx is done first. The parameter description describes the
// condition in the error.
func (s *Stack) waitUntil(ctx context.Context, description string, condition func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ok, err := condition(ctx)
		if ok {
			return nil
		}
		if !s.IsRunning() {
			return fmt.Errorf("waiting until %s: %w", description, errExited)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w (last error: %v)", description, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// waitUntilReady waits until CRI reports that the runtime and its network are ready.
func (s *Stack) waitUntilReady(ctx context.Context) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := runtimev1.NewRuntimeServiceClient(conn)
	return s.waitUntil(ctx, "the runtime is ready", func(ctx context.Context) (bool, error) {
		reply, err := client.Status(ctx, &runtimev1.StatusRequest{})
		if err != nil {
			return false, err
		}
		for _, c := range reply.GetStatus().GetConditions() {
			if !c.GetStatus() && (c.GetType() == runtimev1.RuntimeReady || c.GetType() == runtimev1.NetworkReady) {
				return false, fmt.Errorf("%s: %s", c.GetType(), c.GetMessage())
			}
		}
		return true, nil
	})
}
