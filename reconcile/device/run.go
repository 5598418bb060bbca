package device

import (
	"context"
	"log/slog"
	"time"
)

// saveRetryInterval is the interval between attempts to write the file after an error.
const saveRetryInterval = 10 * time.Second

// Run saves the names of the resources that plugins serve, so that podd reports them with capacity 0
// after a restart until a plugin registers. It forgets resources that have had no plugin for 10
// minutes, and signals Changed when time alone changes the result of Counts or AwaitsPlugins. It
// returns when ctx is done. Without Run, the names are saved only when allocations are saved.
func (m *Manager) Run(ctx context.Context, log *slog.Logger) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for isLogged := false; ; {
		timer.Stop()
		wait, err := m.forgetResources(time.Now()), m.saveNames()
		if err != nil {
			if !isLogged {
				log.Error("saving the names of the resources of device plugins failed; podd retries", "err", err)
			}
			if wait == 0 || wait > saveRetryInterval {
				wait = saveRetryInterval
			}
		}
		isLogged = err != nil
		if wait > 0 {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.resourcesChanged:
		case <-timer.C:
			m.signalChange()
		}
	}
}

// forgetResources removes the resources that have had no plugin for forgetPeriod. It returns the
// duration until it must be called again, because time alone will change another resource or
// AwaitsPlugins; zero if nothing will change.
func (m *Manager) forgetResources(now time.Time) (wait time.Duration) {
	if remaining := awaitPeriod - now.Sub(m.openedAt); remaining > 0 {
		wait = remaining
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, s := range m.resources {
		if s.isExpired(now) {
			delete(m.resources, name)
			continue
		}
		if next := s.nextChange(now); next > 0 && (wait == 0 || next < wait) {
			wait = next
		}
	}
	return wait
}
