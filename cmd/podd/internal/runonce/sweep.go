package runonce

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/reconcile"
	"podd/reconcile/effect"
	"podd/runtime/cri"
)

// sweepTimeout limits the removal of one run.
const sweepTimeout = 30 * time.Second

// Sweep removes the pods of runs whose podd was killed. They get no grace period,
// because nobody waits for their result. If a removal fails, the next podd tries again.
func Sweep(ctx context.Context, cfg *config.Config, runs RunDirs, client *cri.Client, log *slog.Logger) {
	dead, err := runs.Dead()
	if err != nil {
		log.Warn("runs that ended not found", "err", err)
	}
	for _, dir := range dead {
		if err := sweepRun(ctx, cfg, dir, client, log); err != nil && ctx.Err() == nil {
			log.Warn("a run that was killed not removed", "dir", dir, "err", err)
		}
	}
}

func sweepRun(ctx context.Context, cfg *config.Config, dir string, client *cri.Client, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	m, err := newPodRunner(cfg, dir, client, log)
	if err != nil {
		return err // another podd removes it
	}
	defer m.Close()
	same := func(l effect.Leftovers) effect.Leftovers { return l }
	m.begin(ctx, func(reconcile.Change) {}, same)
	select {
	case <-m.observed:
	case <-m.Failed():
		return m.Err()
	case <-ctx.Done():
		return fmt.Errorf("looking at what it left: %w", ctx.Err())
	}
	if err := m.ForceStop(ctx); err != nil {
		return err
	}
	if err := m.Down(ctx); err != nil {
		return err
	}
	return m.remove(ctx)
}
