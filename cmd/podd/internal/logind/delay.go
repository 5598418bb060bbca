package logind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DropIn is the file that raises InhibitDelayMaxSec. It is the one that the kubelet
// writes.
const DropIn = "/etc/systemd/logind.conf.d/99-kubelet.conf"

// reloadTimeout limits the wait for logind's new configuration.
const reloadTimeout = 5 * time.Second

// raiseMaxDelay makes logind wait for the period at least if possible, and returns how
// long it waits.
func (w *watcher) raiseMaxDelay(ctx context.Context, b *bus) (time.Duration, error) {
	now, err := b.maxDelay(ctx)
	if err != nil || now >= w.Period {
		return now, err
	}
	if err := write(w.DropIn, w.Period); err != nil {
		return now, err
	}
	if err := b.reload(ctx); err != nil {
		return now, err
	}
	for end := time.Now().Add(reloadTimeout); ; {
		if now, err = b.maxDelay(ctx); err != nil || now >= w.Period {
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

// write writes the drop-in file, in seconds.
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
