// Package shutdown stops the pods when the node shuts down, group by group in the order of
// their priority.
package shutdown

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/logind"
	"podd/reconcile/plan"
)

// A Router stops and starts the pods. *reconcile.Router implements it.
type Router interface {
	Shutdown(ctx context.Context, groups []plan.ShutdownGroup) error
	AwaitShutdown(ctx context.Context) error
	CancelShutdown(ctx context.Context) error
}

// Options are the options of a Manager.
type Options struct {
	Router Router
	// Groups are the configured groups. If Groups is empty, a shutdown by systemd is not delayed,
	// pods get their own grace periods, and critical pods stop last.
	Groups []config.ShutdownGroup
	// TimesPath is the path of the TimesFile.
	TimesPath string
	// OnTimes is called with the times at which the last shutdown began and ended: when a shutdown
	// begins, when it ends, and for a stored shutdown when the Manager is created. end is zero if the
	// shutdown has not ended, or if the host was powered off before its end.
	OnTimes func(start, end time.Time)
	Log     *slog.Logger
}

// A Manager begins and cancels shutdowns. It is safe for concurrent use.
type Manager struct {
	router    Router
	groups    []plan.ShutdownGroup // the configured groups, or defaultGroups
	mustDelay bool                 // podd delays a shutdown by systemd
	timesPath string
	onTimes   func(start, end time.Time)
	log       *slog.Logger

	timesMu sync.Mutex // guards times and the TimesFile; it is not mu, because writing the file may hang
	times   times

	mu               sync.Mutex // guards all following fields
	state            *State
	lastRestoreError string // last error of Restore that was logged
}

// The initiator of a shutdown is the command "podd shutdown" or systemd's logind.
const (
	initiatorUser   = "podd shutdown"
	initiatorLogind = "logind"
)

// New returns a Manager. If a shutdown is in progress according to state, the Manager continues it.
// The caller must not use state afterwards.
func New(state *State, o Options) *Manager {
	m := &Manager{
		router: o.Router, groups: configuredGroups(o.Groups), mustDelay: len(o.Groups) > 0, timesPath: o.TimesPath, onTimes: o.OnTimes, log: o.Log, state: state,
	}
	t, err := readTimes(o.TimesPath)
	if err != nil {
		o.Log.Warn("reading the times of the last node shutdown failed; its metrics are omitted", "err", err)
	}
	if m.times = t; !t.StartTime.IsZero() {
		m.onTimes(t.StartTime, t.EndTime)
	}
	return m
}

// Run delays each shutdown by systemd until the pods have stopped, and returns when ctx is done. If
// no groups of pods are configured, it returns at once.
func (m *Manager) Run(ctx context.Context) error {
	if !m.mustDelay {
		return nil
	}
	period := totalGrace(m.groups)
	return logind.Run(ctx, logind.Options{
		DropInPath: logind.DropInPath, StopTimeout: period, Log: m.log,
		Begin: func(ctx context.Context, limit time.Duration) error {
			groups := m.groups
			if limit < period {
				groups = scaleGroups(groups, limit)
			}
			return m.begin(ctx, initiatorLogind, groups)
		},
		Cancel: m.Cancel, IsInProgress: func() bool { return m.initiator() == initiatorLogind },
	})
}

// Begin starts a shutdown that a user requested. grace limits its duration; 0 means the
// configured limits. Begin returns when all pods have stopped or ctx is done.
func (m *Manager) Begin(ctx context.Context, grace time.Duration) error {
	groups := m.groups
	if grace > 0 {
		groups = scaleGroups(groups, grace)
	}
	return m.begin(ctx, initiatorUser, groups)
}

// begin starts a shutdown of the groups and waits until all pods have stopped or ctx is done.
// initiator is the caller that started the shutdown. If a shutdown is in progress, begin waits for
// that shutdown instead.
func (m *Manager) begin(ctx context.Context, initiator string, groups []plan.ShutdownGroup) error {
	m.mu.Lock()
	isNew := m.state.current == nil
	if isNew {
		m.log.Info("node is shutting down; stopping pods", "by", initiator)
		if err := m.state.start(initiator, groups); err != nil {
			m.log.Warn("storing the shutdown failed; if podd restarts before the next boot, it starts pods", "err", err)
		}
	}
	err := m.router.Shutdown(context.WithoutCancel(ctx), m.state.Groups()) // the shutdown continues if the client disconnects
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if isNew {
		m.recordStartTime() // after the router has begun to stop pods, because a full or slow disk must not delay this
	}
	err = m.router.AwaitShutdown(ctx)
	if err == nil {
		m.endTimes()
	}
	return err
}

// Restore writes the file of the shutdown in progress again if the file was removed, for example
// together with all files below /run. Without the file, a podd that restarts before the node is off
// would start pods. Without a shutdown, Restore does nothing. Restore must be called regularly.
func (l *Manager) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	missing, err := l.state.restore()
	switch {
	case err != nil && err.Error() != l.lastRestoreError:
		l.lastRestoreError = err.Error()
		l.log.Warn("failed to restore the file of the node shutdown; retrying", "err", err)
	case missing && err == nil:
		l.lastRestoreError = ""
		l.log.Warn("file of the node shutdown was removed; restored the file", "path", l.state.path)
	}
}

// Cancel cancels the shutdown in progress. The router starts the pods again.
func (m *Manager) Cancel(ctx context.Context) error {
	if err := m.cancel(ctx); err != nil {
		return err
	}
	m.endTimes()
	return nil
}

func (m *Manager) cancel(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.current == nil {
		return nil
	}
	if err := m.state.removeFile(); err != nil {
		return err
	}
	if err := m.router.CancelShutdown(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	m.log.Info("node shutdown cancelled; starting pods")
	m.state.current = nil
	return nil
}

// initiator returns the initiator of the shutdown in progress, or "".
func (m *Manager) initiator() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.current == nil {
		return ""
	}
	return m.state.current.Initiator
}
