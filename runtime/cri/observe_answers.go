package cri

import (
	"sync"

	"podd/runtime"
)

// answers are what the runtime told its callers of sandboxes that are ready and of
// containers that run, kept until the Observer has listed them so that it need not
// ask again: for as long as the list says so, a sandbox keeps its addresses and a
// container all that its status tells. Safe for concurrent use; nothing is kept
// before an Observer runs.
type answers struct {
	mu      sync.Mutex // guards all following fields
	now     told       // since the last relist began
	earlier told
}

// told is by id; nil maps: nobody reads.
type told struct {
	sandboxes  map[string]runtime.Sandbox
	containers map[string]runtime.Container
}

// relist says that a list of everything is about to be made. It has all that was told
// by now, and what was told before the one before it is forgotten.
func (a *answers) relist() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.earlier, a.now = a.now, told{map[string]runtime.Sandbox{}, map[string]runtime.Container{}}
}

func (a *answers) keepSandbox(s runtime.Sandbox) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now.sandboxes != nil && s.Ready {
		s.Labels, s.Annotations = nil, nil // the list has them
		a.now.sandboxes[s.ID] = s
	}
}

func (a *answers) keepContainer(c runtime.Container) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now.containers != nil && c.State == runtime.Running {
		c.Labels, c.Annotations = nil, nil // likewise
		a.now.containers[c.ID] = c
	}
}

// sandbox is what was told of one that the list says is ready.
func (a *answers) sandbox(id string) (runtime.Sandbox, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, known := a.now.sandboxes[id]
	if !known {
		s, known = a.earlier.sandboxes[id]
	}
	return s, known
}

// container is what was told of one that the list says runs.
func (a *answers) container(id string) (runtime.Container, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, known := a.now.containers[id]
	if !known {
		c, known = a.earlier.containers[id]
	}
	return c, known
}
