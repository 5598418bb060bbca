package daemon

import (
	"context"
	"time"
)

// rootInterval is the interval between checks of the root directory.
const rootInterval = 3 * time.Second

// watchRoot calls check regularly until ctx is done, and returns its error. podd cannot go on
// after an error, because it would write to the root directory of another instance.
func watchRoot(ctx context.Context, check func() error) error {
	tick := time.NewTicker(rootInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := check(); err != nil {
				return err
			}
		}
	}
}

// checkDirs checks what may be removed or replaced while podd runs: the run directory with the
// node shutdown, and the root directory.
func (p *parts) checkDirs() error {
	p.shutdown.Restore()
	return p.instance.CheckRoot()
}
