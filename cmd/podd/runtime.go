package main

import (
	"log/slog"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/runtime/cri"
)

// defaultEndpoint is waited for where no runtime is found.
const defaultEndpoint = "/run/containerd/containerd.sock"

// dial tells called, which may be nil, of every call.
func dial(cfg *config.Config, log *slog.Logger, called func(method string, took time.Duration, err error)) (*cri.Client, error) {
	endpoint := cfg.RuntimeEndpoint
	if endpoint == "" {
		found, err := cri.Discover()
		if err != nil {
			log.Warn("no runtime yet", "err", err, "waiting", defaultEndpoint)
			found = defaultEndpoint
		}
		endpoint = found
	}
	return cri.Dial(cri.Options{Endpoint: endpoint, ImageEndpoint: cfg.ImageEndpoint, Timeout: cfg.RuntimeRequestTimeout, Called: called})
}
