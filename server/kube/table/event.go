package table

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func eventColumns() []metav1.TableColumnDefinition {
	e := v1.Event{}
	name := nameColumn()
	name.Priority = 1
	return []metav1.TableColumnDefinition{
		newColumn("Last Seen", fieldDescription(e, "lastTimestamp")),
		newColumn("Type", fieldDescription(e, "type")),
		newColumn("Reason", fieldDescription(e, "reason")),
		newColumn("Object", fieldDescription(e, "involvedObject")),
		newWideColumn("Subobject", fieldDescription(e.InvolvedObject, "fieldPath")),
		newWideColumn("Source", fieldDescription(e, "source")),
		newColumn("Message", fieldDescription(e, "message")),
		newWideColumn("First Seen", fieldDescription(e, "firstTimestamp")),
		newWideColumn("Count", fieldDescription(e, "count")),
		name,
	}
}

func eventCells(e *v1.Event, now time.Time) []any {
	first, last, count := occurrences(e)
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	return []any{
		formatAge(last, now), e.Type, e.Reason, object, e.InvolvedObject.FieldPath, eventSource(e),
		strings.TrimSpace(e.Message), formatAge(first, now), count, e.Name,
	}
}

// occurrences returns the times of the first and of the last occurrence of an event, and
// the number of occurrences. It supports the old format and the new format, in which a
// single event has an eventTime and a repeated event has a series.
func occurrences(e *v1.Event) (first, last time.Time, count int64) {
	first, last, count = e.FirstTimestamp.Time, e.LastTimestamp.Time, int64(e.Count)
	if first.IsZero() {
		first = e.EventTime.Time
	}
	if last.IsZero() {
		last = first
	}
	switch {
	case e.Series != nil:
		last, count = e.Series.LastObservedTime.Time, int64(e.Series.Count)
	case count == 0:
		count = 1
	}
	return first, last, count
}

func eventSource(e *v1.Event) string {
	source := valueOr(e.Source.Component, e.ReportingController)
	if host := valueOr(e.Source.Host, e.ReportingInstance); host != "" {
		source += ", " + host
	}
	return source
}
