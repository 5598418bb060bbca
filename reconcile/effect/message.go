package effect

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

// readTerminationMessage returns the content of a container's termination message file. If the
// container has failed, has the terminationMessagePolicy FallbackToLogsOnError and its file is
// empty, it returns the end of the log. If it cannot read the file or the log, it returns the text
// of the error.
func (e *Runner) readTerminationMessage(ctx context.Context, s Input, a plan.ReadMessage) string {
	inc, c := runtime.FindContainer(s.Observed, a.ID)
	if c == nil {
		return ""
	}
	message, err := e.Disk.ReadMessage(inc.UID, c.Name, c.Attempt)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("reading the termination message: %v", err)
	}
	fallback := c.Annotations[runtime.AnnotationTerminationMessagePolicy] == string(v1.TerminationMessageFallbackToLogsOnError)
	if message == "" && fallback && c.ExitCode != 0 {
		if message, err = e.LogsAndCgroups.LastLines(ctx, s.Key, inc.UID, c.Name, c.Attempt); err != nil {
			return fmt.Sprintf("reading the end of the container's log for the termination message: %v", err)
		}
	}
	return strings.ToValidUTF8(message, "\ufffd")
}
