package wiring

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/runtime/cri"
)

// defaultEndpoint is the endpoint to wait for if no runtime is found.
const defaultEndpoint = "/run/containerd/containerd.sock"

// Dial returns a client of the configured runtime. If none is configured, Dial looks for
// the socket of a runtime. It does not wait for a connection. called is called after every
// request and may be nil.
func Dial(cfg *config.Config, log *slog.Logger, called func(method string, took time.Duration, err error)) (*cri.Client, error) {
	endpoint := cfg.RuntimeEndpoint
	if endpoint == "" {
		found, err := cri.Discover()
		if err != nil {
			log.Warn("finding a container runtime failed; waiting for the default one", "endpoint", defaultEndpoint, "err", err)
			found = defaultEndpoint
		}
		endpoint = found
	}
	return cri.Dial(cri.Options{Endpoint: endpoint, ImageEndpoint: cfg.ImageEndpoint, Timeout: cfg.RuntimeRequestTimeout, OnCall: called})
}

// DialReady is like Dial, but waits until the runtime responds. It returns an error if it
// finds no runtime, or if the runtime does not respond within connectTimeout.
func DialReady(ctx context.Context, cfg *config.Config, log *slog.Logger) (*cri.Client, error) {
	if cfg.RuntimeEndpoint == "" {
		if _, err := cri.Discover(); err != nil {
			return nil, err
		}
	}
	client, err := Dial(cfg, log, nil)
	if err != nil {
		return nil, err
	}
	if err := waitResponse(ctx, client); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// connectTimeout limits the wait for the first response of a runtime, which may just have
// been started.
const connectTimeout = 5 * time.Second

// waitResponse waits until the runtime responds, for at most connectTimeout.
func waitResponse(ctx context.Context, client *cri.Client) error {
	limit, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	lastErr := fmt.Errorf("no response from the runtime at %s within %s", client.Endpoint(), connectTimeout)
	for {
		_, err := client.Node(limit)
		if err == nil {
			return nil
		}
		if limit.Err() == nil { // otherwise err only reports the timeout
			lastErr = err
		}
		select {
		case <-limit.Done():
			return cmp.Or(ctx.Err(), lastErr)
		case <-retry.C:
		}
	}
}
