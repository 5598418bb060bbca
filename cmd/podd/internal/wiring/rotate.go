package wiring

import (
	"context"
	"log/slog"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/rotate"
	"podd/runtime/cri"
)

// RotateLogs rotates the logs of containers until ctx is done. logs returns these logs; see
// rotate.Options.Logs. RotateLogs returns at once if the configuration disables the rotation.
func RotateLogs(ctx context.Context, cfg *config.Config, client *cri.Client, logs func() []rotate.Log, log *slog.Logger) error {
	if cfg.LogMaxSize < 0 {
		return nil
	}
	return rotate.New(rotate.Options{
		Root: cfg.PodLogsDir, MaxSize: cfg.LogMaxSize, MaxFiles: cfg.LogMaxFiles, Workers: cfg.LogWorkers, CheckInterval: cfg.LogCheckInterval,
		Logs: logs, Reopen: client.ReopenContainerLog, Log: log,
	}).Run(ctx)
}
