package plan

import "podd/runtime"

// ReadMessage reads the termination message of an exited container.
type ReadMessage struct {
	Container string
	ID        string
}

// Subject implements Action.
func (a ReadMessage) Subject() string { return "message/" + a.ID }

// Verb implements Action.
func (ReadMessage) Verb() string { return "read" }

// String implements Action.
func (a ReadMessage) String() string { return "read the termination message of " + a.Container }

func (ReadMessage) sealed() {}

// readMessages reads the termination message of each exited container once. hasMore reports whether
// there are messages that have not been read yet.
func (f *facts) readMessages(d *Decision) (hasMore bool) {
	if f.current == nil || !f.in.Node.RuntimeReachable {
		return false
	}
	for i := range f.current.Containers {
		c := &f.current.Containers[i]
		_, isRead := f.in.History.TerminationMessages[c.ID]
		if c.State != runtime.Exited || c.StartedAt.IsZero() || isRead || c.Annotations[runtime.AnnotationTerminationMessagePath] == "" {
			continue
		}
		d.addAction(ReadMessage{Container: c.Name, ID: c.ID})
		hasMore = true
	}
	return hasMore
}
