package wiring

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"podd/cmd/podd/internal/config"
	"podd/runtime/cri"
)

// defaultEndpoint is the endpoint that Dial uses if no runtime is configured or found.
const defaultEndpoint = "/run/containerd/containerd.sock"

// Calls configures the metrics and traces of a client's calls. The zero value disables both.
type Calls struct {
	// OnCall is cri.Options.OnCall, and Tracer is cri.Options.Tracer.
	OnCall func(method string, took time.Duration, err error)
	Tracer trace.Tracer
}

// Dial returns a client of the configured runtime. If no runtime is configured, Dial tries the
// default sockets of containerd and CRI-O. Dial does not wait for a connection.
func Dial(cfg *config.Runtime, log *slog.Logger, calls Calls) (*cri.Client, error) {
	endpoint := cfg.RuntimeEndpoint
	if endpoint == "" {
		discovered, err := cri.Discover()
		if err != nil {
			log.Warn("finding a container runtime failed; waiting for a runtime at the default endpoint", "endpoint", defaultEndpoint, "err", err)
			discovered = defaultEndpoint
		}
		endpoint = discovered
	}
	return cri.Dial(cri.Options{Endpoint: endpoint, ImageEndpoint: cfg.ImageEndpoint, Timeout: cfg.RuntimeRequestTimeout, OnCall: calls.OnCall, Tracer: calls.Tracer})
}

// DialReady calls Dial and waits until the runtime responds. It returns an error if no runtime
// is configured or found, or if the runtime does not respond within connectTimeout.
func DialReady(ctx context.Context, cfg *config.Runtime, log *slog.Logger) (*cri.Client, error) {
	if cfg.RuntimeEndpoint == "" {
		if _, err := cri.Discover(); err != nil {
			return nil, err
		}
	}
	client, err := Dial(cfg, log, Calls{})
	if err != nil {
		return nil, err
	}
	if err := waitForResponse(ctx, client); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// connectTimeout is the maximum wait for the first response of the runtime. The runtime may
// have been started immediately before podd.
const connectTimeout = 5 * time.Second

// waitForResponse waits until the runtime responds. If there is no response within connectTimeout,
// it returns the last error of a request.
func waitForResponse(ctx context.Context, client *cri.Client) error {
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
		if limit.Err() == nil { // otherwise err only reports that connectTimeout has passed
			lastErr = err
		}
		select {
		case <-limit.Done():
			return cmp.Or(ctx.Err(), lastErr)
		case <-retry.C:
		}
	}
}
