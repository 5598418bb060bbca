package dynconfig

import (
	"context"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/cmd/podd/internal/config"
)

const (
	// healthInterval is the interval between checks of the health during a trial.
	healthInterval = time.Second
	// maxLostTime is how long a peer may be unreachable during a trial, but at most half of the trial.
	maxLostTime = time.Minute
)

// runConfig runs podd's parts with a configuration. It returns ErrReload if the parts have stopped and
// must start with another configuration.
func (m *manager) runConfig(ctx context.Context, cfg *config.Config) error {
	used := m.state.inUse()
	m.link.publish(m.status(), m.delayed...)
	m.isRunning, m.delayed = true, nil
	defer func() { m.isRunning = false }()
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- m.o.Start(runCtx, cfg, m.link) }()
	m.trialEnd, m.lostSince = time.Now().Add(m.o.Flags.DynamicConfigTrial), time.Time{}
	checkAt := time.Now().Add(checkInterval)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(m.nextWake(checkAt)))
		select {
		case err := <-done:
			return m.handleExit(ctx, err)
		case event, ok := <-m.watcher.Events():
			m.forgetRemoved(event, ok)
			checkAt = earlier(checkAt, time.Now().Add(settleDelay))
		case _, ok := <-m.watcher.Errors(): // events were lost
			m.forgetRemoved(fsnotify.Event{}, ok)
			checkAt = earlier(checkAt, time.Now().Add(settleDelay))
		case <-m.link.wake:
			if m.updateConfigMap() {
				checkAt = time.Now()
			}
		case <-timer.C:
		}
		if !time.Now().Before(checkAt) {
			_ = m.checkCandidate() // apply has reported the error
			checkAt = time.Now().Add(checkInterval)
		}
		if m.state.inUse().Digest == used.Digest {
			m.checkTrial(time.Now())
		}
		if m.state.inUse().Digest != used.Digest {
			cancel(ErrReload)
			if err := <-done; err != nil && ctx.Err() == nil {
				m.notify(true, "KubeletConfigChanged", fmt.Sprintf("stopping with %s failed: %v", used, err))
			}
			if ctx.Err() != nil {
				m.apply(m.state.withStop())
				return nil
			}
			return ErrReload
		}
	}
}

// forgetRemoved stops watching a directory that was removed. ok is false if the watcher has failed.
func (m *manager) forgetRemoved(event fsnotify.Event, ok bool) {
	switch {
	case !ok:
		m.watcher.Close()
	case event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename):
		m.watcher.Forget(event.Name)
	}
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// nextWake returns when the manager must wake up. checkAt is the time of the next check of the files.
func (m *manager) nextWake(checkAt time.Time) time.Time {
	if m.state.Trial == nil {
		return checkAt
	}
	return earlier(checkAt, time.Now().Add(healthInterval))
}

// handleExit handles the end of podd's parts with the error err. If the configuration is on trial, the
// configuration is rejected and handleExit returns ErrReload.
func (m *manager) handleExit(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil || err == nil:
		m.apply(m.state.withStop())
	case m.state.canFallBack():
		m.apply(m.state.withRejectedTrial("podd stopped: "+err.Error(), m.situation()))
		return ErrReload
	}
	return err
}

// checkTrial ends the trial if it has failed or the configuration has proved itself.
func (m *manager) checkTrial(now time.Time) {
	t := m.state.Trial
	if t == nil {
		return
	}
	health := m.link.currentHealth()
	lost := health.lostSince(t.Before)
	switch {
	case lost == "":
		m.lostSince = time.Time{}
	case m.lostSince.IsZero():
		m.lostSince = now
	}
	limit := min(maxLostTime, m.o.Flags.DynamicConfigTrial/2)
	switch {
	case lost != "" && now.Sub(m.lostSince) >= limit && m.state.canFallBack():
		at := m.situation()
		m.apply(m.state.withRejectedTrial(fmt.Sprintf("%s was unreachable for %s, and was reachable before", lost, limit.Round(time.Second)), at))
	case lost == "" && health.isComplete() && !now.Before(m.trialEnd):
		m.apply(m.state.withPassedTrial())
	}
}

// updateConfigMap applies what the Node says about its ConfigMap. It reports whether the candidate may
// have changed.
func (m *manager) updateConfigMap() (hasChanged bool) {
	a := m.link.assigned()
	switch {
	case !a.isKnown:
		return false
	case a.err != "":
		m.link.publish(m.status())
		return false
	case isSameConfigMap(a.configMap, m.configMap):
		return false
	}
	m.configMap = a.configMap
	if err := m.store.writeConfigMap(a.configMap); err != nil {
		m.notify(true, "KubeletConfigLost", fmt.Sprintf("podd will not know the ConfigMap of the Node after a restart until the API server responds: %v", err))
	}
	return true
}

// isSameConfigMap reports whether a and b are the same version of a ConfigMap. Both may be nil.
func isSameConfigMap(a, b *ConfigMap) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
