package main

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

	"podd/server"
)

// DescribeCmd is podd describe.
type DescribeCmd struct {
	Client
	Scope
	Kind  string   `arg:"" enum:"pod,pods,po,node,nodes,no" help:"pod or node."`
	Names []string `arg:"" optional:"" name:"name" help:"These only, pods with or without the node's name; else all of the namespace." complete:"object"`
}

// Run prints all that is known of pods, or of the node, as kubectl describe does.
func (c *DescribeCmd) Run(ctx context.Context, s Streams) error {
	p, v, err := c.look(ctx)
	if err != nil {
		return err
	}
	list, err := p.events(ctx)
	if err != nil {
		return err
	}
	r := newReasons(ctx, p, v)
	d := &description{now: time.Now(), events: list.Items, why: func(k server.Key) string {
		pod := v.Pod(k)
		if pod == nil {
			return ""
		}
		step := decisive(pod)
		return strings.Join(slices.DeleteFunc([]string{r.state(pod, step), r.rule(pod, step)}, func(s string) bool { return s == "" }), "; rule ")
	}}
	if strings.HasPrefix(c.Kind, "n") {
		err = c.nodes(ctx, p, v, d)
	} else {
		err = c.pods(ctx, p, v, d)
	}
	if err != nil {
		return err
	}
	if _, err = io.WriteString(s.Err, d.none); err != nil {
		return err
	}
	_, err = io.WriteString(s.Out, d.String())
	return err
}

func (c *DescribeCmd) pods(ctx context.Context, p *peer, v *server.View, d *description) error {
	var keys []server.Key
	for _, name := range c.Names {
		pod, err := c.named().findPod(v, name)
		if err != nil {
			return err
		}
		keys = append(keys, pod.Key())
	}
	if len(c.Names) == 0 {
		keys = filter(podKeys(v), func(k server.Key) bool { return c.AllNamespaces || k.Namespace == c.namespace() })
		if len(keys) == 0 {
			d.none = noneFound(query{kubeResource{APIResource: metav1.APIResource{Namespaced: true}}, c.namespace(), ""})
		}
	}
	for _, k := range keys {
		pod := &v1.Pod{}
		if err := p.fetch(ctx, "/api/v1/namespaces/"+k.Namespace+"/pods/"+k.Name, nil, "", pod); err != nil {
			return err
		}
		d.pod(pod)
	}
	return nil
}

func (c *DescribeCmd) nodes(ctx context.Context, p *peer, v *server.View, d *description) error {
	names := c.Names
	if len(names) == 0 {
		names = []string{v.Node}
	}
	for _, name := range names {
		node := &v1.Node{}
		if err := p.fetch(ctx, "/api/v1/nodes/"+name, nil, "", node); err != nil {
			return err
		}
		var pods v1.PodList
		if err := p.fetch(ctx, "/api/v1/pods", nil, "", &pods); err != nil {
			return err
		}
		d.node(node, pods.Items)
	}
	return nil
}

// description is what is said of objects: lines with tabs between label and value.
type description struct {
	text   strings.Builder
	now    time.Time
	events []v1.Event
	why    func(server.Key) string
	none   string // what to say of it that there is nothing; "": there is
}

// begin separates objects.
func (d *description) begin() {
	if d.text.Len() > 0 {
		d.text.WriteString("\n\n")
	}
}

// say writes a line so many levels in. What is not the format's is made plain: it
// comes from manifests and containers.
func (d *description) say(level int, format string, values ...any) {
	for i, v := range values {
		values[i] = plain(fmt.Sprint(v))
	}
	d.text.WriteString(strings.Repeat("  ", level))
	fmt.Fprintf(&d.text, format+"\n", values...)
}

// sayIf is say for a value that is not empty.
func (d *description) sayIf(level int, label, value string) {
	if value != "" {
		d.say(level, label+":\t%s", value)
	}
}

// String is all of it, in columns.
func (d *description) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	io.WriteString(w, d.text.String()) // a Builder takes all
	w.Flush()
	return b.String()
}

// pairs says a map, a line each, with sep between.
func (d *description) pairs(level int, label, sep string, all map[string]string) {
	keys := slices.Sorted(maps.Keys(all))
	if len(keys) == 0 {
		d.say(level, label+":\t<none>")
	}
	for i, k := range keys {
		if i > 0 {
			label = ""
		}
		d.say(level, label+colon(label)+"\t%s%s%s", k, sep, all[k])
	}
}

func colon(label string) string {
	if label == "" {
		return ""
	}
	return ":"
}

// list says words, a line each.
func (d *description) list(level int, label string, words []string) {
	if len(words) == 0 {
		d.say(level, label+":\t<none>")
	}
	for i, word := range words {
		if i > 0 {
			label = ""
		}
		d.say(level, label+colon(label)+"\t%s", word)
	}
}

func stamp(t metav1.Time) string { return t.Format(time.RFC1123Z) }

// happened says the events that are about something.
func (d *description) happened(about func(*v1.ObjectReference) bool) {
	shown := filter(d.events, func(e v1.Event) bool { return about(&e.InvolvedObject) })
	if len(shown) == 0 {
		d.say(0, "Events:\t<none>")
		return
	}
	d.say(0, "Events:\n  Type\tReason\tAge\tFrom\tMessage\n  ----\t------\t----\t----\t-------")
	for _, e := range shown {
		age := since(e.LastTimestamp.Time, d.now)
		if e.Count > 1 {
			age = fmt.Sprintf("%s (x%d over %s)", age, e.Count, since(e.FirstTimestamp.Time, d.now))
		}
		d.say(1, "%s\t%s\t%s\t%s\t%s", e.Type, e.Reason, age, e.Source.Component, strings.TrimSpace(e.Message))
	}
}
