package cri

import (
	"sync"

	"podd/runtime"
)

// responseCache contains the responses of the runtime to other callers about ready
// sandboxes and running containers. They are stored until the Observer has listed the
// objects, so that it need not query them again: as long as the state in the list is the
// same, the addresses of a sandbox and the status of a container do not change. Safe for
// concurrent use. Nothing is stored before an Observer runs.
type responseCache struct {
	mu      sync.Mutex // guards all following fields
	now     responses  // since the last relist began
	earlier responses
}

// responses contains responses by ID; nil maps: there is no Observer.
type responses struct {
	sandboxes  map[string]runtime.Sandbox
	containers map[string]runtime.Container
}

// relist must be called before a list of everything. The list includes all objects stored
// until now, and the responses stored before the previous relist are dropped.
func (a *responseCache) relist() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.earlier, a.now = a.now, responses{map[string]runtime.Sandbox{}, map[string]runtime.Container{}}
}

func (a *responseCache) keepSandbox(s runtime.Sandbox) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now.sandboxes != nil && s.Ready {
		s.Labels, s.Annotations = nil, nil // the list has them
		a.now.sandboxes[s.ID] = s
	}
}

func (a *responseCache) keepContainer(c runtime.Container) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now.containers != nil && c.State == runtime.Running {
		c.Labels, c.Annotations = nil, nil // the list has them
		a.now.containers[c.ID] = c
	}
}

// sandbox returns the stored response about a sandbox that is ready in the list.
func (a *responseCache) sandbox(id string) (runtime.Sandbox, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, known := a.now.sandboxes[id]
	if !known {
		s, known = a.earlier.sandboxes[id]
	}
	return s, known
}

// container returns the stored response about a container that runs in the list.
func (a *responseCache) container(id string) (runtime.Container, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, known := a.now.containers[id]
	if !known {
		c, known = a.earlier.containers[id]
	}
	return c, known
}
