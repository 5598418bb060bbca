package daemon

import (
	"context"
	"time"
)

// rootInterval is the interval between checks of the root directory.
const rootInterval = 3 * time.Second

// watchRoot calls check every rootInterval until ctx is done or check fails, and returns the error
// of check. podd must stop after an error, because otherwise it would write to the root directory
// of another instance.
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

// checkDirs checks directories that a user may remove or replace while podd runs. It
// restores the record of a node shutdown in the run directory, and returns an error if the
// root directory was replaced.
func (p *parts) checkDirs() error {
	p.shutdown.Restore()
	return p.instance.CheckRoot()
}
