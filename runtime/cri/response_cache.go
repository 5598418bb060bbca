package cri

import (
	"sync"

	"podd/runtime"
)

// A responseCache contains the responses to status calls that callers other than the Observer made.
// It stores only responses for ready sandboxes and running containers. The Observer uses these
// responses, so that it does not query the same objects again. A responseCache keeps the responses
// until the Observer has listed the objects. The responses stay valid because the addresses of a
// sandbox and the status of a container do not change while their state in the list is the same.
// Before an Observer runs, nothing is stored. A responseCache is safe for concurrent use.
type responseCache struct {
	mu       sync.Mutex // guards all following fields
	current  responses  // responses since the last relist began
	previous responses  // responses between the beginnings of the last two relists
}

// responses contains responses by ID. The maps are nil before an Observer runs.
type responses struct {
	sandboxes  map[string]runtime.Sandbox
	containers map[string]runtime.Container
}

// beginRelist must be called before each request for the list of all pods. The list then contains
// every object whose response was stored before the call. beginRelist drops the responses that are
// older than its previous call.
func (a *responseCache) beginRelist() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.previous, a.current = a.current, responses{map[string]runtime.Sandbox{}, map[string]runtime.Container{}}
}

// storeSandbox stores the response for a sandbox if the sandbox is ready.
func (a *responseCache) storeSandbox(s runtime.Sandbox) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current.sandboxes != nil && s.Ready {
		s.Labels, s.Annotations = nil, nil // the Observer takes labels and annotations from the list
		a.current.sandboxes[s.ID] = s
	}
}

// storeContainer stores the response for a container if the container is running.
func (a *responseCache) storeContainer(c runtime.Container) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current.containers != nil && c.State == runtime.Running {
		c.Labels, c.Annotations = nil, nil // the Observer takes labels and annotations from the list
		a.current.containers[c.ID] = c
	}
}

// sandbox returns the stored response for a sandbox that is ready in the list. ok is false
// if there is none.
func (a *responseCache) sandbox(id string) (s runtime.Sandbox, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok = a.current.sandboxes[id]
	if !ok {
		s, ok = a.previous.sandboxes[id]
	}
	return s, ok
}

// container returns the stored response for a container that is running in the list. ok is
// false if there is none.
func (a *responseCache) container(id string) (c runtime.Container, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok = a.current.containers[id]
	if !ok {
		c, ok = a.previous.containers[id]
	}
	return c, ok
}
