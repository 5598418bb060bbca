package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
	"podd/runtime"
)

// message is what a container left to say of its end: its file, else, where it
// failed and its manifest asks for that, the end of its log. What cannot be read
// is told in its place.
func (e *Effects) message(ctx context.Context, s scene, a plan.ReadMessage) string {
	inc, c := findRecord(s.observed, a.ID)
	if c == nil {
		return ""
	}
	text, err := e.Disk.Message(inc.UID, c.Name, c.Attempt)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("reading the termination message: %v", err)
	}
	fallback := c.Annotations[runtime.AnnotationTerminationMessagePolicy] == string(v1.TerminationMessageFallbackToLogsOnError)
	if text == "" && fallback && c.ExitCode != 0 {
		if text, err = e.Leftovers.LastLines(ctx, s.key, inc.UID, c.Name, c.Attempt); err != nil {
			return fmt.Sprintf("reading the end of its log for a termination message: %v", err)
		}
	}
	return strings.ToValidUTF8(text, "\ufffd")
}
