package dynconfig

import "sync"

// A Status describes the configuration in use. It is immutable.
type Status struct {
	// Assigned is the candidate, and Active is the configuration in use. LastKnownGood is zero if no
	// configuration has passed its trial.
	Assigned, Active, LastKnownGood Version
	IsOnTrial                       bool // Active is on trial
	// Error is the reason why Assigned is not in use or cannot be read, or "".
	Error string
	// Warning is a problem that does not affect the configuration in use, or "".
	Warning string
}

// A Notice reports a change of the configuration in use.
type Notice struct {
	IsWarning bool
	Reason    string // reason of the event, such as "KubeletConfigChanged"
	Message   string
}

// A Link connects the manager with the running parts of podd. It is safe for concurrent use. Its methods
// do not block.
type Link struct {
	wake chan struct{} // receives a value after SetConfigMap and SetHealth; capacity 1

	mu        sync.Mutex // guards all following fields
	status    Status
	notices   []Notice
	changed   chan struct{} // closed when status or notices change
	health    func() Health // nil while podd's parts do not run
	configMap assignment
}

// An assignment describes the ConfigMap that the annotation of the Node names.
type assignment struct {
	isKnown   bool       // the Node was read
	configMap *ConfigMap // nil if the Node names none, or if it cannot be read
	err       string     // why the ConfigMap that the Node names cannot be read, or ""
}

func newLink() *Link {
	return &Link{wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Status returns the present status, and a channel that is closed when the status changes or a Notice is
// added.
func (l *Link) Status() (Status, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.changed
}

// TakeNotices returns the notices since the last call.
func (l *Link) TakeNotices() []Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	notices := l.notices
	l.notices = nil
	return notices
}

// SetHealth sets the function that returns the health of the running parts. The function must not block.
// Nil means that the parts do not run.
func (l *Link) SetHealth(health func() Health) {
	l.mu.Lock()
	l.health = health
	l.mu.Unlock()
	l.notify()
}

// SetConfigMap sets the ConfigMap that the Node names. c is nil if the Node names none, or if err is not
// "". The parameter err is the reason why the ConfigMap cannot be read.
func (l *Link) SetConfigMap(c *ConfigMap, err string) {
	l.mu.Lock()
	l.configMap = assignment{isKnown: true, configMap: c, err: err}
	l.mu.Unlock()
	l.notify()
}

// notify wakes the manager.
func (l *Link) notify() {
	select {
	case l.wake <- struct{}{}:
	default: // the manager has not processed an earlier change yet
	}
}

// publish sets the status and adds notices.
func (l *Link) publish(s Status, notices ...Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == s && len(notices) == 0 {
		return
	}
	l.status, l.notices = s, append(l.notices, notices...)
	close(l.changed)
	l.changed = make(chan struct{})
}

// currentHealth returns the health of the running parts. isKnown is false while they do not run.
func (l *Link) currentHealth() (h Health, isKnown bool) {
	l.mu.Lock()
	health := l.health
	l.mu.Unlock()
	if health == nil {
		return Health{}, false
	}
	return health(), true
}

// assigned returns the assignment that SetConfigMap has set last.
func (l *Link) assigned() assignment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.configMap
}
