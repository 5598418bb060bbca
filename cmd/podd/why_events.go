package main

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// A pod's reasons end with a few of its warnings that are not old.
const (
	fewEvents = 3
	lately    = 10 * time.Minute
)

// lately are a pod's last warnings, but for those that its state tells as well.
func (w *reasons) lately(p *server.PodView) []v1.Event {
	var found []v1.Event
	for _, e := range slices.Backward(w.events) {
		about := &e.InvolvedObject
		if about.Kind != "Pod" || about.Namespace != p.Pod.Namespace || about.Name != p.Pod.Name || about.UID != p.Pod.UID {
			continue
		}
		if e.Type != v1.EventTypeWarning || e.Reason == "BackOff" || w.now.Sub(e.LastTimestamp.Time) > lately {
			continue
		}
		if found = append(found, e); len(found) == fewEvents {
			break
		}
	}
	slices.Reverse(found)
	return found
}

// eventText is an event with when, and how often it happened.
func (w *reasons) eventText(e v1.Event) string {
	when := since(e.LastTimestamp.Time, w.now) + " ago"
	if e.Count > 1 {
		when += fmt.Sprintf(", %d times in %s", e.Count, since(e.FirstTimestamp.Time, w.now))
	}
	const most = 200
	message := []rune(e.Message)
	if len(message) > most {
		message = append(message[:most], '…')
	}
	return fmt.Sprintf("%s: %s: %s", when, e.Reason, string(message))
}
