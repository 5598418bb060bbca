package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/logind"
	"podd/manifest/durable"
	"podd/reconcile/plan"
)

// leaver ends the pods when the machine goes down. That it does is remembered in the
// run directory until the machine has booted: a podd that is started in between
// starts no pod.
type leaver struct {
	path   string // of the file
	boot   string // id of the machine's present life; "" when unknown
	router interface {
		Shutdown(ctx context.Context, groups []plan.ShutdownGroup) error
		AwaitShutdown(ctx context.Context) error
		Resume(ctx context.Context) error
	}
	groups []plan.ShutdownGroup // those to take unless told otherwise
	log    *slog.Logger

	mu  sync.Mutex // guards the following
	now *leave     // nil: the machine does not go down
}

// leave is a shutdown under way, as the file has it.
type leave struct {
	Boot   string               `json:"boot"`
	By     string               `json:"by"` // byUser or byLogind
	Groups []plan.ShutdownGroup `json:"groups"`
}

// Who says that the machine goes down: podd shutdown, or systemd's logind.
const (
	byUser   = "podd shutdown"
	byLogind = "logind"
)

// newLeaver takes up what is under way; without a shutdown that is configured pods
// end with their own grace, the system's last.
func newLeaver(cfg *config.Config, log *slog.Logger) *leaver {
	l := &leaver{path: filepath.Join(cfg.RunDir, "shutdown.json"), boot: firstLine("/proc/sys/kernel/random/boot_id"), log: log}
	for _, g := range cfg.Shutdown {
		l.groups = append(l.groups, plan.ShutdownGroup{Priority: g.Priority, Grace: g.Grace})
	}
	if len(l.groups) == 0 {
		l.groups = unbounded
	}
	now, err := readLeave(l.path, l.boot)
	if err != nil {
		log.Warn("whether the machine is shutting down is not known; pods run", "err", err)
	}
	if l.now = now; now != nil {
		log.Warn("the machine is shutting down; no pod is started", "by", now.By, "end", "a boot, or podd shutdown --cancel")
	}
	return l
}

// readLeave is nil when there is none, or it was of an earlier life of the machine.
func readLeave(path, boot string) (*leave, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var now leave
	if err == nil {
		err = json.Unmarshal(data, &now)
	}
	if err == nil && len(now.Groups) == 0 {
		err = errors.New("it has no groups")
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, err)
	case now.Boot != boot:
		return nil, nil
	}
	return &now, nil
}

// awaitShutdown has a shutdown by systemd wait for the pods, where that is configured.
func (d *podd) awaitShutdown(ctx context.Context) error {
	if len(d.cfg.Shutdown) == 0 {
		return nil
	}
	period := sum(d.leave.groups)
	return logind.Run(ctx, logind.Options{
		DropIn: logind.DropIn, Period: period, Log: d.log,
		Begin: func(ctx context.Context, within time.Duration) error {
			groups := d.leave.groups
			if within < period {
				groups = shared(groups, within)
			}
			return d.leave.begin(ctx, byLogind, groups)
		},
		Cancel: d.leave.cancel, UnderWay: func() bool { return d.leave.by() == byLogind },
	})
}

// underWay are the groups of a shutdown that is; nil for none.
func (l *leaver) underWay() []plan.ShutdownGroup {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return nil
	}
	return l.now.Groups
}

// begin ends the pods, and returns when all have ended or ctx is done. It joins a
// shutdown that is under way.
func (l *leaver) begin(ctx context.Context, by string, groups []plan.ShutdownGroup) error {
	l.mu.Lock()
	if l.now == nil {
		l.now = &leave{Boot: l.boot, By: by, Groups: groups}
		l.log.Info("the machine is shutting down; ending pods", "by", by)
		if err := l.write(); err != nil {
			l.log.Warn("the shutdown is not remembered; a podd that is started before the machine is down runs its pods", "err", err)
		}
	}
	err := l.router.Shutdown(context.WithoutCancel(ctx), l.now.Groups) // who asked may leave
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.router.AwaitShutdown(ctx)
}

// cancel has the pods run again.
func (l *leaver) cancel(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return nil
	}
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting the machine's shutdown: %w", err)
	}
	if err := l.router.Resume(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	l.log.Info("the machine is not shutting down any more; pods run again")
	l.now = nil
	return nil
}

// by says who has the machine go down; "": nobody.
func (l *leaver) by() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return ""
	}
	return l.now.By
}

// write stores l.now.
func (l *leaver) write() error {
	data, err := json.Marshal(l.now)
	if err != nil {
		return err
	}
	return durable.Write(l.path, data)
}

// sum is how long groups take at most.
func sum(groups []plan.ShutdownGroup) (all time.Duration) {
	for _, g := range groups {
		all += min(g.Grace, plan.MaxGrace)
	}
	return all
}

// unbounded are those where no shutdown is configured: pods get their own grace.
var unbounded = []plan.ShutdownGroup{{Grace: plan.MaxGrace}, {Priority: config.CriticalPriority, Grace: plan.MaxGrace}}

// shared gives groups their parts of a time in all, in proportion. Of those without a
// bound the system's gets a third.
func shared(groups []plan.ShutdownGroup, whole time.Duration) []plan.ShutdownGroup {
	parts := make([]float64, len(groups))
	for i, g := range groups {
		parts[i] = g.Grace.Seconds()
	}
	if slices.Equal(groups, unbounded) {
		parts = []float64{2, 1}
	}
	all := 0.
	for _, p := range parts {
		all += p
	}
	out := slices.Clone(groups)
	for i := range out {
		out[i].Grace = 0
		if all > 0 {
			out[i].Grace = time.Duration(parts[i] / all * float64(whole)).Truncate(time.Millisecond)
		}
	}
	return out
}
