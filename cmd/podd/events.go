package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// EventsCmd is podd events.
type EventsCmd struct {
	Client
	Scope
	Pod    string   `arg:"" optional:"" help:"Events of this pod only, with or without the node's name." complete:"pod"`
	Types  []string `placeholder:"TYPE" help:"Events of these types only, Normal or Warning."`
	Output string   `short:"o" enum:",wide,json,yaml,name" default:"" placeholder:"FORMAT" help:"wide, name, json or yaml."`
	Watch  bool     `short:"w" help:"Go on with what happens."`
}

// Run lists the events on stdout, the newest last.
func (c *EventsCmd) Run(ctx context.Context, s Streams) error {
	for _, kind := range c.Types {
		if !strings.EqualFold(kind, v1.EventTypeNormal) && !strings.EqualFold(kind, v1.EventTypeWarning) {
			return exitWith(codeUsage, fmt.Errorf("--types: %q is neither Normal nor Warning", kind))
		}
	}
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	list, err := p.events(ctx)
	if err != nil {
		return err
	}
	out := eventTable{EventsCmd: c, now: time.Now, colour: coloured(s.Out)}
	if err := out.print(list, s); err != nil || !c.Watch {
		return err
	}
	return p.watchEvents(ctx, list.ResourceVersion, func(e *v1.Event) (bool, error) {
		return false, out.follow(e, s.Out)
	})
}

// events are all that podd keeps.
func (p *peer) events(ctx context.Context) (*v1.EventList, error) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, err := p.call(limited, http.MethodGet, "/v1/events", nil, nil)
	if err != nil {
		return nil, p.slow(ctx, err)
	}
	defer resp.Body.Close()
	list := &v1.EventList{}
	if err := json.NewDecoder(resp.Body).Decode(list); err != nil {
		return nil, p.slow(ctx, fmt.Errorf("reading the answer of podd at %s: %w", p.socket, err))
	}
	return list, nil
}

// watchEvents calls each with every event newer than a revision.
func (p *peer) watchEvents(ctx context.Context, revision string, each func(*v1.Event) (bool, error)) error {
	resp, err := p.call(ctx, http.MethodGet, "/v1/events", url.Values{"watch": {"1"}, "revision": {revision}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return eachLine(ctx, resp.Body, each)
}

// keeps says whether an event is asked for.
func (c *EventsCmd) keeps(e *v1.Event) bool {
	about := &e.InvolvedObject
	if len(c.Types) > 0 && !slices.ContainsFunc(c.Types, func(kind string) bool { return strings.EqualFold(kind, e.Type) }) {
		return false
	}
	if c.Pod == "" {
		return c.AllNamespaces || e.Namespace == c.namespace()
	} else if !c.named().keeps(e.Namespace) {
		return false
	}
	namespace, name, given := strings.Cut(c.Pod, "/")
	if !given {
		namespace, name = e.Namespace, c.Pod
	}
	return about.Kind == "Pod" && about.Namespace == namespace && (about.Name == name || shortEventName(e) == name)
}

// shortEventName is what an event is about, as its author knows it.
func shortEventName(e *v1.Event) string {
	if e.InvolvedObject.Kind != "Pod" {
		return e.InvolvedObject.Name
	}
	return shortName(&server.View{Node: e.Source.Host}, e.InvolvedObject.Name)
}

// eventTable prints events in one format.
type eventTable struct {
	*EventsCmd
	now    func() time.Time
	colour bool
	table  table
	headed bool
}

// print lists what is asked for of list, and changes it.
func (t *eventTable) print(list *v1.EventList, s Streams) error {
	list.Items = slices.DeleteFunc(list.Items, func(e v1.Event) bool { return !t.keeps(&e) })
	if (t.Output == "json" || t.Output == "yaml") && !t.Watch {
		list.Kind = "List" // what kubectl calls it
		for i := range list.Items {
			list.Items[i].APIVersion, list.Items[i].Kind = "v1", "Event"
		}
		return t.object(list, s.Out)
	}
	if len(list.Items) == 0 {
		_, err := io.WriteString(s.Err, t.none())
		return err
	}
	if t.tabular() {
		lines := [][]string{t.heads()}
		for i := range list.Items {
			lines = append(lines, t.cells(&list.Items[i]))
		}
		t.table.fit(lines)
	}
	for i := range list.Items {
		if err := t.one(&list.Items[i], s.Out); err != nil {
			return err
		}
	}
	return nil
}

// none says where there are no events.
func (t *eventTable) none() string {
	if where := t.namespace(); where != "" && t.Pod == "" {
		return plain("podd: no events in namespace "+where+"; -A looks in all") + "\n"
	}
	return "podd: no events\n"
}

// follow prints an event that is asked for.
func (t *eventTable) follow(e *v1.Event, w io.Writer) error {
	if !t.keeps(e) {
		return nil
	}
	return t.one(e, w)
}

func (t *eventTable) tabular() bool { return t.Output == "" || t.Output == "wide" }

func (t *eventTable) object(v any, w io.Writer) error {
	if t.Output == "yaml" && t.Watch {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
	}
	return asData(w, t.Output, v)
}
