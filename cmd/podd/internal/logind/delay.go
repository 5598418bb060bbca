package logind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DropInPath is the path of the drop-in file that raises InhibitDelayMaxSec. The kubelet uses the
// same path.
const DropInPath = "/etc/systemd/logind.conf.d/99-kubelet.conf"

// reloadTimeout is the maximum wait for the new configuration of logind to take effect.
const reloadTimeout = 5 * time.Second

// raiseMaxDelay raises the maximum delay of logind to w.StopTimeout if the delay is shorter. It
// returns the delay in effect, or 0 if the delay is unknown. It may return a delay together with an
// error.
func (w *watcher) raiseMaxDelay(ctx context.Context, b *bus) (time.Duration, error) {
	delay, err := b.readMaxDelay(ctx)
	if err != nil || delay >= w.StopTimeout {
		return delay, err
	}
	if err := writeDropIn(w.DropInPath, w.StopTimeout); err != nil {
		return delay, err
	}
	if err := b.reload(ctx); err != nil {
		return delay, err
	}
	for end := time.Now().Add(reloadTimeout); ; {
		if delay, err = b.readMaxDelay(ctx); err != nil || delay >= w.StopTimeout {
			return delay, err
		}
		if time.Now().After(end) {
			return delay, fmt.Errorf("logind delays a shutdown by %s at most, less than the shutdown grace periods of %s, although %s sets InhibitDelayMaxSec; remove the setting from the other file of logind.conf.d that overrides it", delay, w.StopTimeout, w.DropInPath)
		}
		select {
		case <-ctx.Done():
			return delay, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// writeDropIn writes the drop-in file at path. The file sets InhibitDelayMaxSec to period, rounded
// up to seconds.
func writeDropIn(path string, period time.Duration) error {
	seconds := int64((period + time.Second - 1) / time.Second)
	text := fmt.Sprintf("# Written by podd, so that pods have enough time to stop before a shutdown.\n[Login]\nInhibitDelayMaxSec=%d\n", seconds)
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
