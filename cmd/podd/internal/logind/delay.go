package logind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DropIn is the file by which logind's patience is raised, a kubelet's.
const DropIn = "/etc/systemd/logind.conf.d/99-kubelet.conf"

// reloadTime is how long logind gets to take its configuration in.
const reloadTime = 5 * time.Second

// raise has logind wait for the period at least, and returns how long it does.
func (w *watcher) raise(ctx context.Context, b *bus) (time.Duration, error) {
	now, err := b.delay(ctx)
	if err != nil || now >= w.Period {
		return now, err
	}
	if err := write(w.DropIn, w.Period); err != nil {
		return now, err
	}
	if err := b.reload(ctx); err != nil {
		return now, err
	}
	for end := time.Now().Add(reloadTime); ; {
		if now, err = b.delay(ctx); err != nil || now >= w.Period {
			return now, err
		}
		if time.Now().After(end) {
			return now, fmt.Errorf("logind waits %s with a shutdown and not the %s of the shutdown grace periods, though %s says so; another file of logind.conf.d overrides it", now, w.Period, w.DropIn)
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// write makes the drop-in; logind counts in seconds.
func write(path string, period time.Duration) error {
	seconds := int64((period + time.Second - 1) / time.Second)
	text := fmt.Sprintf("# Written by podd, for the pods to end in time.\n[Login]\nInhibitDelayMaxSec=%d\n", seconds)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("raising logind's InhibitDelayMaxSec: %w", err)
	}
	next := path + ".podd"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return fmt.Errorf("raising logind's InhibitDelayMaxSec: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("raising logind's InhibitDelayMaxSec: %w", err)
	}
	return nil
}
