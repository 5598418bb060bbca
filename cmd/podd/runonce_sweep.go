package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/once"
	"podd/reconcile"
	"podd/runtime/cri"
)

// sweepPatience is how long what one dead run left may take to be removed.
const sweepPatience = 30 * time.Second

// sweepRuns removes what runs left whose podd was killed. Nobody waits for
// their results, so their pods get no grace. What cannot be removed is left to
// the next podd.
func sweepRuns(ctx context.Context, cfg *config.Config, runs once.Place, client *cri.Client, log *slog.Logger) {
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

// sweepEvery is how soon a daemon tries again.
const sweepEvery = time.Minute

// sweep removes what dead runs left, however long that takes. It works until
// that is done, or ctx is.
func (d *podd) sweep(ctx context.Context) error {
	runs := once.Place{Root: d.cfg.RootDir}
	again := time.NewTicker(sweepEvery)
	defer again.Stop()
	for {
		if dead, err := runs.Dead(); err == nil && len(dead) == 0 {
			return nil
		}
		sweepRuns(ctx, d.cfg, runs, d.client, d.log)
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

func sweepRun(ctx context.Context, cfg *config.Config, dir string, client *cri.Client, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, sweepPatience)
	defer cancel()
	m, err := newMachine(cfg, dir, client, log)
	if err != nil {
		return err // another podd sweeps it
	}
	defer m.Close()
	same := func(l reconcile.Leftovers) reconcile.Leftovers { return l }
	m.begin(ctx, func(reconcile.Change) {}, same)
	select {
	case <-m.looked:
	case <-m.Failed():
		return m.Err()
	case <-ctx.Done():
		return fmt.Errorf("looking at what it left: %w", ctx.Err())
	}
	if err := m.Hurry(ctx); err != nil {
		return err
	}
	if err := m.Down(ctx); err != nil {
		return err
	}
	return m.remove(ctx)
}

// dialNow connects to a runtime that answers, or says why there is none.
func dialNow(ctx context.Context, cfg *config.Config, log *slog.Logger) (*cri.Client, error) {
	if cfg.RuntimeEndpoint == "" {
		if _, err := cri.Discover(); err != nil {
			return nil, err
		}
	}
	client, err := dial(cfg, log, nil)
	if err != nil {
		return nil, err
	}
	if err := answers(ctx, client); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// answers returns nil once the runtime does.
func answers(ctx context.Context, client *cri.Client) error {
	limit, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	why := fmt.Errorf("the runtime at %s did not answer within %s", client.Endpoint(), runtimePatience)
	for {
		_, err := client.Node(limit)
		if err == nil {
			return nil
		}
		if limit.Err() == nil { // else it only says that the time is up
			why = err
		}
		select {
		case <-limit.Done():
			return cmp.Or(ctx.Err(), why)
		case <-retry.C:
		}
	}
}
