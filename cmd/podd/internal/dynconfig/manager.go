package dynconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/manifest/dirwatch"
)

// ErrReload is the cause of the end of the context of Options.Start if podd's parts must stop because
// they will start with another configuration.
var ErrReload = errors.New("podd starts with another configuration")

// Options are the options of Run.
type Options struct {
	Flags   config.Flags // DynamicConfigDir must be set
	Version string       // version of podd
	// Start runs podd's parts with a configuration until ctx is done. It returns nil if podd has stopped
	// in an orderly way.
	Start func(ctx context.Context, cfg *config.Config, link *Link) error
	// Stderr receives the warnings about the configuration in use.
	Stderr io.Writer
}

// Run runs podd and changes its configuration until ctx is done or podd fails.
func Run(ctx context.Context, o Options) error {
	store, err := openStore(o.Flags.DynamicConfigDir)
	if err != nil {
		return err
	}
	defer store.close()
	return newManager(o, store).run(ctx)
}

// run runs podd with one configuration after another.
func (m *manager) run(ctx context.Context) error {
	defer m.watcher.Close()
	for {
		cfg, err := m.choose()
		if err != nil {
			return err
		}
		err = m.runConfig(ctx, cfg)
		if !errors.Is(err, ErrReload) {
			return err
		}
	}
}

// A manager chooses the configuration of podd. One goroutine owns it.
type manager struct {
	o       Options
	store   *store
	link    *Link
	watcher dirwatch.Watcher

	state     State
	configMap *ConfigMap // the ConfigMap that replaces the file of --config, or nil
	assigned  Version    // the newest candidate
	loaded    *config.Config
	loadedOf  string   // digest of the documents of loaded
	storeErr  string   // why the state or a checkpoint cannot be stored, or ""
	isRunning bool     // podd's parts run
	delayed   []Notice // notices for the next parts, because the events of the running parts end with them
	lostSince time.Time
	trialEnd  time.Time // when the trial ends; zero while the parts do not run
}

// newManager returns a manager with the stored state. Damaged files are reported, and count as missing.
func newManager(o Options, s *store) *manager {
	m := &manager{o: o, store: s, link: newLink()}
	var stateErr, configMapErr error
	m.state, stateErr = s.readState()
	m.configMap, configMapErr = s.readConfigMap()
	for _, err := range []error{stateErr, configMapErr} {
		if err != nil {
			m.notify(true, "KubeletConfigLost", err.Error())
		}
	}
	m.apply(m.state.withStart(m.situation()))
	return m
}

func (m *manager) situation() situation {
	return situation{poddVersion: m.o.Version, health: m.link.currentHealth(), now: time.Now()}
}

// choose reads the candidate and returns the configuration to use. It returns an error if neither the
// candidate nor an earlier configuration can be used.
func (m *manager) choose() (*config.Config, error) {
	err := m.checkCandidate()
	for {
		v := m.state.inUse()
		switch {
		case v.Digest == "" && err != nil:
			return nil, err
		case v.Digest == "":
			return nil, errors.New(m.state.Rejection.Reason)
		case m.loaded != nil && m.loadedOf == v.Digest:
			return m.loaded, nil
		}
		c, readErr := m.store.readCheckpoint(v)
		if readErr == nil {
			m.loaded, readErr = m.load(c)
		}
		if readErr == nil {
			m.loadedOf = v.Digest
			return m.loaded, nil
		}
		m.notify(true, "KubeletConfigLost", fmt.Sprintf("%s can no longer be used: %v", v, readErr))
		m.apply(m.state.without(v))
	}
}

// checkCandidate reads the candidate and updates the state. It returns an error if the candidate is
// invalid.
func (m *manager) checkCandidate() error {
	watchFiles(&m.watcher, &m.o.Flags) // before the files are read, so that no change is lost
	docs, readErr := config.ReadDocuments(&m.o.Flags)
	c := newCheckpoint(m.configMap.replaceMain(docs, m.mainDir()), m.configMapVersion())
	if readErr != nil { // the documents are incomplete
		c.Version.Digest = digestOf(append(c.Documents, config.Document{Data: []byte(readErr.Error())}))
	}
	m.assigned = c.Version
	if c.Version.Digest == m.state.inUse().Digest || readErr == nil && m.state.isRejected(c.Version, m.situation()) && m.state.inUse().Digest != "" {
		m.apply(m.state.withCandidate(candidate{version: c.Version}, m.situation()))
		return nil
	}
	cfg, err := m.load(c)
	if err = errors.Join(readErr, err); err == nil {
		storeErr := m.store.writeCheckpoint(c)
		if storeErr != nil && m.state.inUse().Digest != "" { // podd could not use the configuration after a restart
			m.storeErr = storeErr.Error()
			m.link.publish(m.status())
			return nil
		}
		m.loaded, m.loadedOf = cfg, c.Version.Digest
	}
	m.apply(m.state.withCandidate(candidate{version: c.Version, err: err}, m.situation()))
	return err
}

// load returns the configuration of a checkpoint. It prints warnings on Stderr.
func (m *manager) load(c checkpoint) (*config.Config, error) {
	host, err := config.ReadHostFacts()
	if err != nil {
		return nil, err
	}
	cfg, warnings, err := config.LoadDocuments(m.o.Flags, c.Documents, host)
	if err != nil {
		return nil, err
	}
	if cfg.RunOnce {
		return nil, errors.New("runOnce cannot be used together with --dynamic-config-dir")
	}
	for _, w := range warnings {
		fmt.Fprintln(m.o.Stderr, w)
	}
	return &cfg, nil
}

// mainDir returns the directory to which relative paths in a ConfigMap refer.
func (m *manager) mainDir() string {
	if dir, err := filepath.Abs(filepath.Dir(m.o.Flags.Config)); m.o.Flags.Config != "" && err == nil {
		return dir
	}
	return "/"
}

func (m *manager) configMapVersion() *ConfigMapVersion {
	if m.configMap == nil {
		return nil
	}
	return &m.configMap.Version
}

// apply makes next the current state, stores it, and reports what has changed.
func (m *manager) apply(next State) {
	before := m.state
	m.state = next
	if next != before || m.storeErr != "" {
		m.storeErr = ""
		if err := m.store.writeState(next); err != nil {
			m.storeErr = err.Error()
		} else {
			m.store.prune(next)
		}
	}
	notices := changes(before, next, m.o.Flags.DynamicConfigTrial)
	if m.isRunning && next.inUse().Digest != before.inUse().Digest {
		m.delayed = append(m.delayed, notices...)
		notices = nil
	}
	m.link.publish(m.status(), notices...)
}

// notify reports an event.
func (m *manager) notify(isWarning bool, reason, message string) {
	m.link.publish(m.status(), Notice{IsWarning: isWarning, Reason: reason, Message: message})
}

// status returns the Status that corresponds to the state.
func (m *manager) status() Status {
	s := Status{Assigned: m.assigned, Active: m.state.inUse(), LastKnownGood: m.state.LastKnownGood, IsOnTrial: m.state.Trial != nil}
	assigned := m.link.assigned()
	switch r := m.state.Rejection; {
	case r != nil:
		s.Error = fmt.Sprintf("%s was rejected: %s", r.Version, oneLine(r.Reason))
	case assigned.err != "":
		s.Error = assigned.err
	case m.storeErr != "":
		s.Error = m.storeErr
	}
	return s
}

// maxReasonBytes limits the length of a reason, because events and conditions are limited.
const maxReasonBytes = 800

// oneLine returns a text in one line of limited length.
func oneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasSuffix(b.String(), ":"):
			b.WriteString(" ")
		case b.Len() > 0:
			b.WriteString("; ")
		}
		b.WriteString(strings.TrimSpace(line))
	}
	if text = b.String(); len(text) > maxReasonBytes {
		text = strings.ToValidUTF8(text[:maxReasonBytes], "") + "…"
	}
	return text
}

// changes returns the notices for a change of the state. trial is the duration of a trial.
func changes(before, after State, trial time.Duration) (notices []Notice) {
	if r := after.Rejection; r != nil && (before.Rejection == nil || *before.Rejection != *r) {
		message := fmt.Sprintf("%s was rejected: %s", r.Version, oneLine(r.Reason))
		if v := after.inUse(); v.Digest != "" {
			message += "; podd uses " + v.String()
		}
		notices = append(notices, Notice{IsWarning: true, Reason: "KubeletConfigRejected", Message: message})
	}
	switch {
	case after.Trial != nil && (before.Trial == nil || before.Trial.Version.Digest != after.Trial.Version.Digest):
		notices = append(notices, Notice{Reason: "KubeletConfigChanged", Message: fmt.Sprintf("podd uses %s, which is on trial for %s", after.Trial.Version, trial)})
	case after.LastKnownGood.Digest != before.LastKnownGood.Digest && after.LastKnownGood.Digest != "":
		notices = append(notices, Notice{Reason: "KubeletConfigAccepted", Message: after.LastKnownGood.String() + " has passed its trial"})
	}
	return notices
}
