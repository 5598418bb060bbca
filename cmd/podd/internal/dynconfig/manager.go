package dynconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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
	// Start runs podd's parts with a configuration until ctx is done, and reports the warnings about the
	// configuration. It returns nil if podd has stopped in an orderly way.
	Start func(ctx context.Context, cfg *config.Config, warnings []config.Warning, link *Link) error
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

// A manager chooses the configuration of podd. One goroutine owns it.
type manager struct {
	o       Options
	store   *store
	link    *Link
	watcher dirwatch.Watcher

	state     State
	assigned  Version          // the newest candidate
	loaded    *config.Config   // the last valid configuration
	warnings  []config.Warning // warnings about loaded
	loadedOf  string           // digest of the documents of loaded
	readErr   string           // why the candidate cannot be read, or ""
	storeErr  string           // why the candidate or the state cannot be stored, or ""
	configMap *ConfigMap       // the ConfigMap that replaces the file of --config, or nil
	// mustStoreConfigMap is set if configMap differs from the stored ConfigMap.
	mustStoreConfigMap bool

	isRunning bool     // podd's parts run
	delayed   []Notice // notices for the next parts, because the events of the running parts end with them
	reached   Health   // peers that have responded in this process
	before    Health   // peers that responded when podd's parts were last settled
	trial     trialTimes
	// checkpoints contains the configuration in use and the last known good one by digest, because a user
	// may delete the directory.
	checkpoints map[string]checkpoint
}

// newManager returns a manager with the stored state. Damaged files are reported, and count as missing.
func newManager(o Options, s *store) *manager {
	m := &manager{o: o, store: s, link: newLink(), checkpoints: map[string]checkpoint{}}
	state, err := s.readState()
	m.reportLoss(err)
	if o.Flags.Kubeconfig != "" {
		m.configMap, err = s.readConfigMap()
		m.reportLoss(err)
	}
	m.state, m.before = state, state.Health
	next := state.withStart(m.facts())
	if !m.apply(next) && next.canFallBack() { // crashes could not be counted
		m.state.Trial = nil
	}
	return m
}

// reportLoss reports a stored file that is damaged. err may be nil.
func (m *manager) reportLoss(err error) {
	if err != nil {
		m.notify(true, "KubeletConfigLost", err.Error())
	}
}

// run runs podd with one configuration after another.
func (m *manager) run(ctx context.Context) error {
	defer m.watcher.Close()
	for isFirst := true; ; isFirst = false {
		cfg, err := m.choose()
		if err != nil {
			return err
		}
		if isFirst {
			m.delayed = slices.DeleteFunc(m.link.TakeNotices(), Notice.isStateChange)
			m.delayed = append(m.delayed, startNotices(m.state, m.o.Flags.DynamicConfigTrial)...)
		}
		err = m.runConfig(ctx, cfg)
		if !errors.Is(err, ErrReload) {
			return err
		}
	}
}

func (m *manager) facts() facts {
	return facts{poddVersion: m.o.Version, health: m.before, now: time.Now()}
}

// choose reads the candidate and returns the configuration to use. It returns an error if neither the
// candidate nor an earlier configuration can be used.
func (m *manager) choose() (*config.Config, error) {
	err := m.checkCandidate()
	for {
		v := m.state.inUse()
		switch {
		case v.Digest == "" && err == nil:
			return nil, errors.New("no configuration can be used") // a valid candidate is in use or on trial
		case v.Digest == "":
			return nil, err
		case m.loadedOf == v.Digest:
			return m.loaded, nil
		}
		c, readErr := m.readCheckpoint(v)
		if readErr != nil {
			m.reportLoss(readErr)
			m.apply(m.state.withoutVersion(v))
			err = m.checkCandidate()
			continue
		}
		loadErr := m.load(c)
		switch {
		case loadErr == nil:
		case m.state.canFallBack():
			m.apply(m.state.withRejectedTrial(loadErr.Error(), m.facts()))
		default:
			return nil, loadErr
		}
	}
}

// readCheckpoint returns the checkpoint of a version.
func (m *manager) readCheckpoint(v Version) (checkpoint, error) {
	if c, ok := m.checkpoints[v.Digest]; ok {
		return c, nil
	}
	return m.store.readCheckpoint(v)
}

// restoreStore locks the directory again and stores everything again if the directory was deleted.
func (m *manager) restoreStore() {
	isDeleted, err := m.store.reopen()
	if !isDeleted {
		return
	}
	m.notify(true, "KubeletConfigLost", "the directory of --dynamic-config-dir was deleted while podd was running; podd stores its content again")
	for _, c := range m.checkpoints {
		err = errors.Join(err, m.store.writeCheckpoint(c))
	}
	err = errors.Join(err, m.store.writeState(m.state))
	m.mustStoreConfigMap = m.configMap != nil
	m.setStoreErr(err)
}

// checkCandidate reads the candidate and updates the state. It returns an error if the candidate cannot
// be read or is invalid. A candidate that cannot be read does not change the state, because its directory
// may be mounted later.
func (m *manager) checkCandidate() error {
	watchFiles(&m.watcher, &m.o.Flags) // before the files are read, so that no change is lost
	m.restoreStore()
	m.storeConfigMap()
	c, err := m.readCandidate()
	if err != nil {
		m.setReadErr(oneLine(err.Error()))
		return err
	}
	m.setReadErr("")
	m.assigned = c.Version
	used := m.state.inUse().Digest
	isSettled := used == c.Version.Digest && m.loadedOf == used || used != "" && m.state.isRejected(c.Version, m.facts()) || m.state.isWaiting(c.Version)
	if isSettled {
		m.apply(m.state.withCandidate(candidate{version: c.Version, err: m.rejectionOf(c.Version)}, m.facts()))
		return nil
	}
	if err = m.load(c); err == nil {
		if storeErr := m.store.writeCheckpoint(c); storeErr != nil && m.state.inUse().Digest != "" {
			m.setStoreErr(storeErr) // podd could not use the configuration after a restart, so it tries again later
			m.loadedOf = ""
			return nil
		}
	}
	m.apply(m.state.withCandidate(candidate{version: c.Version, err: err}, m.facts()))
	return err
}

// rejectionOf returns the reason why a configuration is rejected, or nil if it is not rejected or in use.
func (m *manager) rejectionOf(v Version) error {
	if m.state.isRejected(v, m.facts()) && m.state.inUse().Digest != v.Digest {
		return errors.New(m.state.Rejection.Reason)
	}
	return nil
}

// readCandidate returns the candidate. A ConfigMap replaces the file of --config.
func (m *manager) readCandidate() (checkpoint, error) {
	flags := m.o.Flags
	if m.configMap != nil {
		flags.Config = ""
	}
	docs, err := config.ReadDocuments(&flags)
	if err != nil {
		return checkpoint{}, err
	}
	if m.configMap == nil {
		return newCheckpoint(docs, nil), nil
	}
	return newCheckpoint(append([]config.Document{m.configMap.document(m.mainDir())}, docs...), &m.configMap.Version), nil
}

// load makes a checkpoint the loaded configuration. If the configuration is invalid, the loaded
// configuration does not change.
func (m *manager) load(c checkpoint) error {
	host, err := config.ReadHostFacts()
	if err != nil {
		return err
	}
	cfg, warnings, err := config.LoadDocuments(m.o.Flags, c.Documents, host)
	if err != nil {
		return err
	}
	switch {
	case cfg.RunOnce:
		return errors.New("runOnce cannot be used together with --dynamic-config-dir")
	case m.store.dir == cfg.RootDir || m.store.dir == cfg.RunDir:
		return fmt.Errorf("%s is the directory of --dynamic-config-dir and another directory of podd; use a separate directory", m.store.dir)
	}
	m.loaded, m.warnings, m.loadedOf, m.checkpoints[c.Version.Digest] = &cfg, warnings, c.Version.Digest, c
	return nil
}

// mainDir returns the directory to which relative paths in a ConfigMap refer.
func (m *manager) mainDir() string {
	if dir, err := filepath.Abs(filepath.Dir(m.o.Flags.Config)); m.o.Flags.Config != "" && err == nil {
		return dir
	}
	return "/"
}

// apply stores next, sets the current state to next, and reports the changes. It returns false if next
// cannot be stored. A new trial then does not begin, because podd could not count its crashes.
func (m *manager) apply(next State) (stored bool) {
	before := m.state
	if next != before || m.storeErr != "" {
		err := m.store.writeState(next)
		if err != nil && before.inUse().Digest != "" && next.Trial != nil && next.Trial.Version.Digest != before.inUse().Digest {
			m.setStoreErr(err)
			return false
		}
		m.setStoreErr(err)
		stored = err == nil
	} else {
		stored = true
	}
	m.state = next
	if stored && next != before {
		m.store.prune(next)
	}
	maps.DeleteFunc(m.checkpoints, func(digest string, _ checkpoint) bool {
		return digest != next.inUse().Digest && digest != next.LastKnownGood.Digest
	})
	notices := changes(before, next, m.o.Flags.DynamicConfigTrial)
	if m.isRunning && next.inUse().Digest != before.inUse().Digest {
		m.delayed = append(m.delayed, notices...)
		notices = nil
	}
	m.link.publish(m.status(), notices...)
	return stored
}

// setStoreErr records whether the state and the candidate can be stored. It keeps and reports the first
// error after a success, because errors contain random names of temporary files.
func (m *manager) setStoreErr(err error) {
	switch {
	case err == nil:
		m.storeErr = ""
		m.link.publish(m.status())
	case m.storeErr == "":
		m.storeErr = oneLine(err.Error())
		m.notify(true, "KubeletConfigNotStored", m.storeErr)
	}
}

// setReadErr records whether the candidate can be read. It reports each new error.
func (m *manager) setReadErr(text string) {
	if text == m.readErr {
		return
	}
	m.readErr = text
	if text == "" {
		m.link.publish(m.status())
		return
	}
	m.notify(true, "KubeletConfigNotRead", text)
}

// notify reports an event.
func (m *manager) notify(isWarning bool, reason, message string) {
	m.link.publish(m.status(), Notice{IsWarning: isWarning, Reason: reason, Message: message})
}

// storeConfigMap stores the ConfigMap that replaces the file of --config. After a failure, the next check
// tries again.
func (m *manager) storeConfigMap() {
	if !m.mustStoreConfigMap {
		return
	}
	err := m.store.writeConfigMap(m.configMap)
	m.setStoreErr(err)
	m.mustStoreConfigMap = err != nil
}
