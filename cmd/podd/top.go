package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// TopCmd is podd top.
type TopCmd struct {
	Client
	Scope
	Resource     string   `arg:"" enum:"pod,pods,po,node,nodes,no" help:"pod or node."`
	Names        []string `arg:"" optional:"" name:"name" help:"These only, pods with or without the node's name; else all." complete:"object"`
	Containers   bool     `help:"Of each container of a pod."`
	Sum          bool     `help:"And of all pods together."`
	SortBy       string   `enum:",cpu,memory" default:"" placeholder:"WHAT" help:"cpu or memory, the most first; else by name."`
	Selector     string   `short:"l" placeholder:"SELECTOR" help:"What has these labels only: app=web,tier!=test."`
	Output       string   `short:"o" enum:",json,yaml" default:"" placeholder:"FORMAT" help:"json or yaml."`
	NoHeaders    bool     `help:"Print no heads of columns."`
	ShowCapacity bool     `help:"Percents of a node's capacity, not of what pods may have of it."`
}

// usage is PodMetrics or NodeMetrics of metrics.k8s.io/v1beta1.
type usage struct {
	metav1.ObjectMeta `json:"metadata"`
	Usage             v1.ResourceList  `json:"usage"`
	Containers        []containerUsage `json:"containers"`
}

type containerUsage struct {
	Name  string          `json:"name"`
	Usage v1.ResourceList `json:"usage"`
}

// Validate refuses flags that are of the other kind.
func (c *TopCmd) Validate() error {
	switch {
	case len(c.Names) > 0 && c.Selector != "":
		return errors.New("-l and names exclude each other")
	case c.ofNodes() && (c.Containers || c.Sum):
		return errors.New("--containers and --sum are of pods")
	case !c.ofNodes() && c.ShowCapacity:
		return errors.New("--show-capacity is of nodes")
	}
	return nil
}

func (c *TopCmd) ofNodes() bool { return strings.HasPrefix(c.Resource, "n") }

// Run prints what pods or the node use now, as kubectl top does.
func (c *TopCmd) Run(ctx context.Context, s Streams) error {
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	queries, err := c.queries(ctx, p)
	if err != nil {
		return err
	}
	all, err := c.settled(ctx, p, queries)
	if err != nil {
		return err
	}
	if c.Output != "" {
		o := &objects{GetCmd: &GetCmd{Output: c.Output, Selector: c.Selector}}
		return o.whole(ctx, p, queries, s)
	}
	if len(all) == 0 {
		_, err := io.WriteString(s.Err, noneFound(queries[0]))
		return err
	}
	lines := c.pods
	if c.ofNodes() {
		var nodes v1.NodeList
		if err := p.fetch(ctx, "/api/v1/nodes", nil, "", &nodes); err != nil {
			return err
		}
		lines = func(all []usage) [][]string { return c.nodes(all, nodes.Items) }
	}
	_, err = io.WriteString(s.Out, columned(lines(all)))
	return err
}

func (c *TopCmd) queries(ctx context.Context, p *peer) ([]query, error) {
	r := kubeResource{root: "/apis/metrics.k8s.io/v1beta1"}
	if r.Name = "nodes"; !c.ofNodes() {
		r.Name, r.Namespaced = "pods", true
	}
	all := []query{{r, c.namespace(), ""}}
	if len(c.Names) > 0 {
		all = nil
	}
	for _, name := range c.Names {
		q := query{r, "", name}
		if r.Namespaced {
			_, pod, err := p.findPod(ctx, c.named(), name)
			if err != nil {
				return nil, err
			}
			q.namespace, q.name = pod.Pod.Namespace, pod.Pod.Name
		}
		all = append(all, q)
	}
	return all, nil
}

// settleTime is how long a container that has just started may be missing: the
// processor time a second takes two readings, and samples are shared for one.
const settleTime = 2 * time.Second

// settled is what is used, with the containers that have just started.
func (c *TopCmd) settled(ctx context.Context, p *peer, queries []query) ([]usage, error) {
	for patience := time.Now().Add(settleTime); ; {
		v, err := p.state(ctx)
		if err != nil {
			return nil, err
		}
		all, err := c.used(ctx, p, queries)
		late := time.Now().After(patience) || !c.young(v, all, queries)
		if missing := (*server.Error)(nil); errors.As(err, &missing) && late {
			return nil, unmeasured(v, queries, err)
		} else if missing == nil && err != nil || late {
			return all, err
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// unmeasured says what it means that there are no numbers of what was named.
func unmeasured(v *server.View, queries []query, err error) error {
	for _, q := range queries {
		pod := v.Pod(server.Key{Namespace: q.namespace, Name: q.name})
		if q.name != "" && pod != nil && len(statesOfRunning(pod)) == 0 {
			return fmt.Errorf("%s uses nothing: no container of it runs; podd why %s", title(v, pod.Key()), wordFor(v, pod.Key()))
		}
	}
	return err
}

func (c *TopCmd) used(ctx context.Context, p *peer, queries []query) ([]usage, error) {
	selection := url.Values{}
	if c.Selector != "" {
		selection.Set("labelSelector", c.Selector)
	}
	var all []usage
	for _, q := range queries {
		if q.name != "" {
			var one usage
			if err := p.fetch(ctx, q.path(q.namespace, q.name), nil, "", &one); err != nil {
				return nil, err
			}
			all = append(all, one)
			continue
		}
		var list struct{ Items []usage }
		if err := p.fetch(ctx, q.path(q.namespace, ""), selection, "", &list); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// young says whether a container that is asked for has just started and is in no
// sample yet.
func (c *TopCmd) young(v *server.View, all []usage, queries []query) bool {
	if c.ofNodes() || c.Selector != "" && len(all) == 0 {
		return false
	}
	known := map[server.Key]*usage{}
	for i := range all {
		known[server.Key{Namespace: all[i].Namespace, Name: all[i].Name}] = &all[i]
	}
	return slices.ContainsFunc(v.Pods, func(pod *server.PodView) bool {
		used := known[pod.Key()]
		if used == nil && c.Selector != "" || !slices.ContainsFunc(queries, func(q query) bool {
			return (q.namespace == "" || q.namespace == pod.Pod.Namespace) && (q.name == "" || q.name == pod.Pod.Name)
		}) {
			return false
		}
		return slices.ContainsFunc(statesOfRunning(pod), func(s v1.ContainerStatus) bool {
			measured := used != nil && slices.ContainsFunc(used.Containers, func(u containerUsage) bool { return u.Name == s.Name })
			return !measured && time.Since(s.State.Running.StartedAt.Time) < settleTime+time.Second // it is of whole seconds
		})
	})
}

// statesOfRunning are those of the containers of a pod that run.
func statesOfRunning(p *server.PodView) []v1.ContainerStatus {
	var all []v1.ContainerStatus
	for s := range server.Statuses(p.Pod) {
		if runs(*s) {
			all = append(all, *s)
		}
	}
	return all
}
