package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// EventsCmd is the podd events command.
type EventsCmd struct {
	client.Flags
	ListScope
	Pod    string   `arg:"" optional:"" help:"Output only the events of this pod. The node name at the end of its name may be omitted." complete:"pod"`
	Types  []string `placeholder:"TYPE" help:"Output only events of given types, Normal or Warning."`
	Output string   `short:"o" enum:",wide,json,yaml,name" default:"" placeholder:"FORMAT" help:"Output format. One of: wide, json, yaml, name."`
	Watch  bool     `short:"w" help:"After listing the requested events, watch for more events."`
}

// Run prints the events, the newest last.
func (c *EventsCmd) Run(ctx context.Context, s iostreams.Streams) error {
	for _, kind := range c.Types {
		if !strings.EqualFold(kind, v1.EventTypeNormal) && !strings.EqualFold(kind, v1.EventTypeWarning) {
			return exit.NewError(exit.Usage, fmt.Errorf("--types: %q is neither Normal nor Warning", kind))
		}
	}
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	list, err := p.ListEvents(ctx)
	if err != nil {
		return err
	}
	out := eventPrinter{EventsCmd: c, now: time.Now, workingDir: paths.WorkingDir(), useColor: printer.SupportsColor(s.Out)}
	if err := out.print(list, s); err != nil || !c.Watch {
		return err
	}
	return p.WatchEvents(ctx, list.ResourceVersion, func(e *v1.Event) (bool, error) {
		return false, out.printIfSelected(e, s.Out)
	})
}

// includes reports whether an event is selected.
func (c *EventsCmd) includes(e *v1.Event) bool {
	object := &e.InvolvedObject
	if len(c.Types) > 0 && !slices.ContainsFunc(c.Types, func(kind string) bool { return strings.EqualFold(kind, e.Type) }) {
		return false
	}
	if c.Pod == "" {
		return c.AllNamespaces || e.Namespace == c.namespace()
	} else if !c.podSelector().includes(e.Namespace) {
		return false
	}
	namespace, name, hasNamespace := strings.Cut(c.Pod, "/")
	switch {
	case !hasNamespace:
		namespace, name = e.Namespace, c.Pod
	case isPodResource(namespace) && namespace != e.Namespace:
		namespace = e.Namespace
	}
	return object.Kind == "Pod" && object.Namespace == namespace && (object.Name == name || shortEventName(e) == name)
}

// shortEventName returns the name of the object that an event is about. It omits the node
// name at the end of a pod name.
func shortEventName(e *v1.Event) string {
	if e.InvolvedObject.Kind != "Pod" {
		return e.InvolvedObject.Name
	}
	return shortName(&server.View{Node: e.Source.Host}, e.InvolvedObject.Name)
}

// eventPrinter prints events in one output format.
type eventPrinter struct {
	*EventsCmd
	now              func() time.Time
	workingDir       string // directory that paths at the beginning of messages are shown relative to
	useColor         bool
	table            printer.Table
	hasPrintedHeader bool
}

// print prints the selected events of list. It modifies list.
func (t *eventPrinter) print(list *v1.EventList, s iostreams.Streams) error {
	list.Items = slices.DeleteFunc(list.Items, func(e v1.Event) bool { return !t.includes(&e) })
	if (t.Output == "json" || t.Output == "yaml") && !t.Watch {
		list.Kind = "List" // as in kubectl's output
		for i := range list.Items {
			list.Items[i].APIVersion, list.Items[i].Kind = "v1", "Event"
		}
		return t.printObject(list, s.Out)
	}
	if len(list.Items) == 0 {
		_, err := io.WriteString(s.Err, t.noEventsMessage())
		return err
	}
	if isTableFormat(t.Output) {
		lines := [][]string{t.header()}
		for i := range list.Items {
			lines = append(lines, t.cells(&list.Items[i]))
		}
		t.table.WidenColumns(lines)
	}
	for i := range list.Items {
		if err := t.printEvent(&list.Items[i], s.Out); err != nil {
			return err
		}
	}
	return nil
}

// noEventsMessage returns the message for an empty list.
func (t *eventPrinter) noEventsMessage() string {
	if namespace := t.namespace(); namespace != "" && t.Pod == "" {
		return printer.Escape("podd: no events in namespace "+namespace+"; use -A for all namespaces") + "\n"
	}
	return "podd: no events\n"
}

func (t *eventPrinter) printIfSelected(e *v1.Event, w io.Writer) error {
	if !t.includes(e) {
		return nil
	}
	return t.printEvent(e, w)
}

// printObject prints an event or a list of events as JSON or YAML.
func (t *eventPrinter) printObject(v any, w io.Writer) error {
	if t.Output == "yaml" && t.Watch {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
	}
	return printer.WriteData(w, t.Output, v)
}
