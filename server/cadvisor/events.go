package cadvisor

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/model"

	"podd/manifest/order"
	"podd/server"
)

// An eventFilter selects events.
type eventFilter struct {
	cgroup      string
	isRecursive bool // also selects the events of the cgroups below cgroup
	kinds       map[model.EventType]bool
	start, end  time.Time // inclusive; zero means no limit
	max         int       // maximum number of events, the newest first; 0 or less means all
}

// maxEvents is the default of the parameter max_events, as in cAdvisor.
const maxEvents = 10

func queryEvents(ctx context.Context, m Meter, r request) (any, error) {
	f, err := newEventFilter(r)
	if err != nil {
		return nil, err
	}
	var events []model.Event
	if f.kinds[model.EventContainerCreation] {
		cgroups, err := m.Containers(ctx)
		if err != nil {
			return nil, err
		}
		events = creationEvents(cgroups)
	}
	if f.kinds[model.EventOom] || f.kinds[model.EventOomKill] {
		oomEvents, err := m.OOMEvents()
		if err != nil {
			return nil, &server.Error{Status: http.StatusInternalServerError, Message: err.Error()}
		}
		events = append(events, oomEvents...)
	}
	return f.filter(events), nil
}

// newEventFilter returns the filter of a request, or an error with status 400 if podd does not serve
// the request.
func newEventFilter(r request) (*eventFilter, error) {
	p := parameterReader{request: r}
	f := &eventFilter{cgroup: r.cgroup, isRecursive: p.readBool("subcontainers"), max: maxEvents}
	selectsAll := p.readBool("all_events")
	f.kinds = map[model.EventType]bool{
		model.EventOom:               p.readBool("oom_events") || selectsAll,
		model.EventOomKill:           p.readBool("oom_kill_events") || selectsAll,
		model.EventContainerCreation: p.readBool("creation_events") || selectsAll,
	}
	f.start, f.end = p.readTime("start_time"), p.readTime("end_time")
	if text := r.parameters.Get("max_events"); text != "" {
		n, err := strconv.Atoi(text)
		f.max = n
		p.require(err == nil, "max_events must be a number, not %q", text)
	}
	p.require(!p.readBool("deletion_events"), "podd does not serve deletion_events, because it does not record when cgroups are deleted")
	p.require(!p.readBool("stream"), "podd does not stream events (stream=true); repeat the request with start_time")
	return f, p.err
}

// A parameterReader reads the parameters of a request. After a parameter that podd does not accept, err
// is an error with status 400.
type parameterReader struct {
	request
	err error
}

// require records an error unless ok is true or there is an earlier error.
func (p *parameterReader) require(ok bool, format string, arguments ...any) {
	if !ok && p.err == nil {
		p.err = &server.Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, arguments...)}
	}
}

// readBool returns false if the parameter is missing.
func (p *parameterReader) readBool(name string) bool {
	text := p.parameters.Get(name)
	v, err := strconv.ParseBool(text)
	p.require(err == nil || text == "", "%s must be true or false, not %q", name, text)
	return v
}

// readTime returns the zero time if the parameter is missing.
func (p *parameterReader) readTime(name string) time.Time {
	text := p.parameters.Get(name)
	t, err := time.Parse(time.RFC3339, text)
	p.require(err == nil || text == "", "%s must be a time such as 2006-01-02T15:04:05Z, not %q", name, text)
	return t
}

// creationEvents returns the events of the creation of cgroups.
func creationEvents(cgroups map[string]*model.ContainerInfo) (events []model.Event) {
	for _, name := range sortedNames(cgroups) {
		if creationTime := cgroups[name].Spec.CreationTime; !creationTime.IsZero() {
			events = append(events, model.Event{ContainerName: name, Timestamp: creationTime, EventType: model.EventContainerCreation})
		}
	}
	return events
}

// filter returns the events that the filter selects, the oldest first.
func (f *eventFilter) filter(events []model.Event) []*model.Event {
	selected := []*model.Event{}
	for i := range events {
		if f.selects(&events[i]) {
			selected = append(selected, &events[i])
		}
	}
	order.Stable(selected, func(a, b *model.Event) int { return a.Timestamp.Compare(b.Timestamp) })
	if f.max > 0 && len(selected) > f.max {
		selected = selected[len(selected)-f.max:]
	}
	return selected
}

func (f *eventFilter) selects(e *model.Event) bool {
	isInside := e.ContainerName == f.cgroup || f.isRecursive && (f.cgroup == "/" || strings.HasPrefix(e.ContainerName, f.cgroup+"/"))
	isInTime := !e.Timestamp.Before(f.start) && (f.end.IsZero() || !e.Timestamp.After(f.end))
	return isInside && isInTime && f.kinds[e.EventType]
}
