package podrunner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/wiring"
	"podd/reconcile"
	"podd/runtime/cri"
)

// sweepTimeout is the maximum duration of the removal of one run.
const sweepTimeout = 30 * time.Second

// Sweep removes the pods and directories of runs whose podd was killed. The pods get no grace
// period, because their results are no longer used. If a removal fails, Sweep logs the error, and
// the next call tries again.
func Sweep(ctx context.Context, cfg *config.Config, runs Dirs, client *cri.Client, log *slog.Logger) {
	deadRuns, err := runs.ListDead()
	if err != nil {
		log.Warn("failed to list the runs whose podd was killed; their pods remain until podd starts again", "err", err)
	}
	for _, dir := range deadRuns {
		if err := sweepRun(ctx, cfg, dir, client, log); err != nil && ctx.Err() == nil {
			log.Warn("failed to remove the pods of a run whose podd was killed; the next start of podd tries again", "dir", dir, "err", err)
		}
	}
}

// sweepRun removes the pods and the directory of one run.
func sweepRun(ctx context.Context, cfg *config.Config, dir string, client *cri.Client, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	r, err := New(Options{
		Config: cfg, Dir: dir, Client: client, LogsAndCgroups: wiring.NewLogsAndCgroups(cfg, nil), Publish: func(reconcile.Change) {}, Log: log,
		MayRotateLog: func(ContainerLog) bool { return false }, // the logs are about to be removed
	})
	if err != nil {
		return err // for example because another podd is removing this run and has locked the directory
	}
	defer r.Close()
	r.Begin(ctx)
	select {
	case <-r.snapshotComplete:
	case <-r.Failed():
		return r.Err()
	case <-ctx.Done():
		return fmt.Errorf("listing the pods of run %s: %w", dir, ctx.Err())
	}
	if err := r.ForceStop(ctx); err != nil {
		return err
	}
	if err := r.Down(ctx); err != nil {
		return err
	}
	return r.RemoveDir(ctx)
}
