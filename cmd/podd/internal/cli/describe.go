package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// DescribeCmd is the podd describe command.
type DescribeCmd struct {
	client.Flags
	ListScope
	Kind  string   `arg:"" enum:"pod,pods,po,node,nodes,no" help:"Resource type. One of: pod, node."`
	Names []string `arg:"" optional:"" name:"name" help:"Object names. The node name at the end of a pod name may be omitted. Default: all objects in the namespace." complete:"object"`
}

// Run prints the details of pods, or of the node, as kubectl describe does.
func (c *DescribeCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, v, err := connectAndFetchState(ctx, c.Flags)
	if err != nil {
		return err
	}
	list, err := p.ListEvents(ctx)
	if err != nil {
		return err
	}
	r := newExplainer(ctx, p, v)
	d := &description{now: time.Now(), workingDir: paths.WorkingDir(), events: list.Items, explainState: func(k server.Key) string {
		pod := v.Pod(k)
		if pod == nil {
			return ""
		}
		step := mainStep(pod)
		return strings.Join(slices.DeleteFunc([]string{r.stateText(pod, step), r.ruleText(pod, step)}, func(s string) bool { return s == "" }), "; rule ")
	}}
	if strings.HasPrefix(c.Kind, "n") {
		err = c.describeNodes(ctx, p, v, d)
	} else {
		err = c.describePods(ctx, p, v, d)
	}
	if err != nil {
		return err
	}
	if _, err = io.WriteString(s.Err, d.notice); err != nil {
		return err
	}
	_, err = io.WriteString(s.Out, d.String())
	return err
}

// describePods adds the named pods, or all pods in the namespace, to d.
func (c *DescribeCmd) describePods(ctx context.Context, p *client.Client, v *server.View, d *description) error {
	var keys []server.Key
	for _, name := range c.Names {
		pod, err := c.podSelector().findPod(v, name)
		if err != nil {
			return err
		}
		keys = append(keys, pod.Key())
	}
	if len(c.Names) == 0 {
		keys = filter(podKeys(v), func(k server.Key) bool { return c.AllNamespaces || k.Namespace == c.namespace() })
		if len(keys) == 0 {
			d.notice = noResourcesMessage(query{client.Resource{APIResource: metav1.APIResource{Namespaced: true}}, c.namespace(), ""})
		}
	}
	for _, k := range keys {
		pod := &v1.Pod{}
		if err := p.Fetch(ctx, "/api/v1/namespaces/"+k.Namespace+"/pods/"+k.Name, nil, "", pod); err != nil {
			return err
		}
		d.writePod(pod)
	}
	return nil
}

// describeNodes adds the named nodes, or the node of podd, to d.
func (c *DescribeCmd) describeNodes(ctx context.Context, p *client.Client, v *server.View, d *description) error {
	names := c.Names
	if len(names) == 0 {
		names = []string{v.Node}
	}
	for _, name := range names {
		node := &v1.Node{}
		if err := p.Fetch(ctx, "/api/v1/nodes/"+name, nil, "", node); err != nil {
			return err
		}
		var pods v1.PodList
		if err := p.Fetch(ctx, "/api/v1/pods", nil, "", &pods); err != nil {
			return err
		}
		d.writeNode(node, pods.Items)
	}
	return nil
}

// A description is the output of podd describe: lines with a tab between label and value.
type description struct {
	text         strings.Builder
	now          time.Time
	workingDir   string // directory that paths at the beginning of messages are shown relative to
	events       []v1.Event
	explainState func(server.Key) string // explains the state of a pod; "" if the state needs no explanation
	notice       string                  // printed to stderr if there are no objects
}

// beginObject writes the separator between two objects.
func (d *description) beginObject() {
	if d.text.Len() > 0 {
		d.text.WriteString("\n\n")
	}
}

// writeLine writes a line that is indented by level. It escapes the values, because they come
// from manifests and containers.
func (d *description) writeLine(level int, format string, values ...any) {
	for i, v := range values {
		values[i] = printer.Escape(fmt.Sprint(v))
	}
	d.text.WriteString(strings.Repeat("  ", level))
	fmt.Fprintf(&d.text, format+"\n", values...)
}

// writeLineIfSet writes a line if value is not empty.
func (d *description) writeLineIfSet(level int, label, value string) {
	if value != "" {
		d.writeLine(level, label+":\t%s", value)
	}
}

// String returns the description with aligned columns.
func (d *description) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	io.WriteString(w, d.text.String()) // the error is ignored, because writing to a tabwriter on a Builder cannot fail
	w.Flush()
	return b.String()
}

// writePairs writes a map, one pair per line. separator is written between key and value.
func (d *description) writePairs(label, separator string, pairs map[string]string) {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		lines = append(lines, k+separator+pairs[k])
	}
	d.writeList(0, label, lines)
}

// writeList writes the label and the first value on one line, and each further value on its own
// line. If there are no values, writeList writes <none>.
func (d *description) writeList(level int, label string, values []string) {
	if len(values) == 0 {
		d.writeLine(level, label+":\t<none>")
	}
	for i, value := range values {
		if i == 0 {
			d.writeLine(level, label+":\t%s", value)
		} else {
			d.writeLine(level, "\t%s", value)
		}
	}
}

// writeResources writes amounts of resources, or nothing if there are none.
func (d *description) writeResources(level int, label string, amounts v1.ResourceList) {
	if len(amounts) > 0 {
		d.writeLine(level, label+":")
	}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		q := amounts[name]
		d.writeLine(level+1, "%s:\t%s", name, q.String())
	}
}

// formatTimestamp formats a time as kubectl describe does.
func formatTimestamp(t metav1.Time) string { return t.Format(time.RFC1123Z) }

// writeEvents writes the events of the objects for which isInvolved returns true.
func (d *description) writeEvents(isInvolved func(*v1.ObjectReference) bool) {
	events := filter(d.events, func(e v1.Event) bool { return isInvolved(&e.InvolvedObject) })
	if len(events) == 0 {
		d.writeLine(0, "Events:\t<none>")
		return
	}
	d.writeLine(0, "Events:\n  Type\tReason\tAge\tFrom\tMessage\n  ----\t------\t----\t----\t-------")
	for _, e := range events {
		age := printer.FormatAge(e.LastTimestamp.Time, d.now)
		if e.Count > 1 {
			age = fmt.Sprintf("%s (x%d over %s)", age, e.Count, printer.FormatAge(e.FirstTimestamp.Time, d.now))
		}
		d.writeLine(1, "%s\t%s\t%s\t%s\t%s", e.Type, e.Reason, age, e.Source.Component, strings.TrimSpace(paths.ShortenStart(e.Message, d.workingDir)))
	}
}
