package plan

import "podd/runtime"

// ReadMessage reads what a container that has ended left to say of it.
type ReadMessage struct {
	Container string
	ID        string
}

// Subject implements Action.
func (a ReadMessage) Subject() string { return "message/" + a.ID }

// Verb implements Action.
func (ReadMessage) Verb() string { return "read" }

func (a ReadMessage) String() string { return "read the termination message of " + a.Container }

func (ReadMessage) sealed() {}

// readMessages has what the ended containers said read, once of each, and tells
// whether any of it is yet to come.
func (f *facts) readMessages(d *Decision) (more bool) {
	if f.cur == nil || !f.in.Node.Reachable {
		return false
	}
	for i := range f.cur.Containers {
		c := &f.cur.Containers[i]
		_, read := f.in.History.Said[c.ID]
		if c.State != runtime.Exited || c.StartedAt.IsZero() || read || c.Annotations[runtime.AnnotationTerminationMessagePath] == "" {
			continue
		}
		d.do(ReadMessage{Container: c.Name, ID: c.ID})
		more = true
	}
	return more
}
