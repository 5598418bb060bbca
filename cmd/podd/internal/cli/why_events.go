package cli

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// The explanation of a pod ends with its recent warnings. These constants limit their number and
// their age.
const (
	maxWarnings   = 3
	maxWarningAge = 10 * time.Minute
)

// recentWarnings returns the last warnings about the pod, the newest last. It omits the events with
// the reason BackOff, because the headline of the pod already shows the back-off.
func (w *explainer) recentWarnings(p *server.PodView) []v1.Event {
	var warnings []v1.Event
	for _, e := range slices.Backward(w.events) {
		object := &e.InvolvedObject
		if object.Kind != "Pod" || object.Namespace != p.Pod.Namespace || object.Name != p.Pod.Name || object.UID != p.Pod.UID {
			continue
		}
		if e.Type != v1.EventTypeWarning || e.Reason == "BackOff" || w.now.Sub(e.LastTimestamp.Time) > maxWarningAge {
			continue
		}
		if warnings = append(warnings, e); len(warnings) == maxWarnings {
			break
		}
	}
	slices.Reverse(warnings)
	return warnings
}

// eventText describes an event with its age and count.
func (w *explainer) eventText(e v1.Event) string {
	when := printer.FormatAge(e.LastTimestamp.Time, w.now) + " ago"
	if e.Count > 1 {
		when += fmt.Sprintf(", %d times in %s", e.Count, printer.FormatAge(e.FirstTimestamp.Time, w.now))
	}
	return fmt.Sprintf("%s: %s: %s", when, e.Reason, truncate(paths.ShortenStart(e.Message, w.workingDir)))
}
