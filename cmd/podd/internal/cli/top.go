package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// TopCmd is the podd top command.
type TopCmd struct {
	client.Flags
	ListScope
	Resource     string   `arg:"" enum:"pod,pods,po,node,nodes,no" help:"Resource type. One of: pod, node."`
	Names        []string `arg:"" optional:"" name:"name" help:"Object names. The node name at the end of a pod name may be omitted. Default: all objects." complete:"object"`
	Containers   bool     `help:"Print usage of containers within a pod."`
	Sum          bool     `help:"Print the sum of the resource usage."`
	SortBy       string   `enum:",cpu,memory" default:"" placeholder:"FIELD" help:"Sort the list by the specified field, either cpu or memory, highest first. Default: by name."`
	Selector     string   `short:"l" placeholder:"SELECTOR" help:"Selector (label query) to filter on, for example app=web,tier!=test."`
	Output       string   `short:"o" enum:",json,yaml" default:"" placeholder:"FORMAT" help:"Output format. One of: json, yaml."`
	NoHeaders    bool     `help:"Print output without headers."`
	ShowCapacity bool     `help:"Print node resources based on Capacity instead of Allocatable (default) of the nodes."`
}

// resourceUsage is a PodMetrics or NodeMetrics object of metrics.k8s.io/v1beta1.
type resourceUsage struct {
	metav1.ObjectMeta `json:"metadata"`
	Usage             v1.ResourceList  `json:"usage"`
	Containers        []containerUsage `json:"containers"`
}

// containerUsage is the usage of one container in a PodMetrics object.
type containerUsage struct {
	Name  string          `json:"name"`
	Usage v1.ResourceList `json:"usage"`
}

// Validate returns an error for flags that do not apply to the resource type.
func (c *TopCmd) Validate(*kong.Context) error {
	switch {
	case len(c.Names) > 0 && c.Selector != "":
		return errors.New("only one of NAME or selector can be provided")
	case c.isForNodes() && (c.Containers || c.Sum):
		return errors.New("--containers and --sum can be used only with pods")
	case !c.isForNodes() && c.ShowCapacity:
		return errors.New("--show-capacity can be used only with nodes")
	}
	return nil
}

// isForNodes reports whether the resource type is node.
func (c *TopCmd) isForNodes() bool { return strings.HasPrefix(c.Resource, "n") }

// Run prints the current usage of pods or the node, as kubectl top does.
func (c *TopCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	queries, err := c.queries(ctx, p)
	if err != nil {
		return err
	}
	usages, err := c.waitUsage(ctx, p, queries)
	if err != nil {
		return err
	}
	if c.Output != "" {
		o := &objectPrinter{GetCmd: &GetCmd{Output: c.Output, Selector: c.Selector}}
		return o.printObjects(ctx, p, queries, s)
	}
	if len(usages) == 0 {
		_, err := io.WriteString(s.Err, noResourcesMessage(queries[0]))
		return err
	}
	lines := c.podRows
	if c.isForNodes() {
		var nodes v1.NodeList
		if err := p.Fetch(ctx, "/api/v1/nodes", nil, "", &nodes); err != nil {
			return err
		}
		lines = func(usages []resourceUsage) [][]string { return c.nodeRows(usages, nodes.Items) }
	}
	_, err = io.WriteString(s.Out, (&printer.Table{HasKubectlWidths: true}).FormatLines(lines(usages)))
	return err
}

// queries returns a query for each named pod or node. Without names, it returns one query: for all
// nodes, or for all pods in the selected namespace or in all namespaces.
func (c *TopCmd) queries(ctx context.Context, p *client.Client) ([]query, error) {
	r := client.Resource{GroupVersionPath: "/apis/metrics.k8s.io/v1beta1"}
	if c.isForNodes() {
		r.Name = "nodes"
	} else {
		r.Name, r.Namespaced = "pods", true
	}
	if len(c.Names) == 0 {
		return []query{{r, c.namespace(), ""}}, nil
	}
	var list []query
	for _, name := range c.Names {
		q, err := c.newQuery(ctx, p, r, name)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// sampleTimeout limits the wait for the first sample of a new container. A sample of CPU
// usage requires two readings, and samples are cached for one second.
const sampleTimeout = 2 * time.Second

// waitUsage returns the usage. It waits for the first sample of containers that have just
// started.
func (c *TopCmd) waitUsage(ctx context.Context, p *client.Client, queries []query) ([]resourceUsage, error) {
	for deadline := time.Now().Add(sampleTimeout); ; {
		v, err := p.FetchView(ctx)
		if err != nil {
			return nil, err
		}
		usages, err := c.fetchUsage(ctx, p, queries)
		final := time.Now().After(deadline) || !c.hasUnsampledContainer(v, usages, queries)
		apiErr := (*server.Error)(nil)
		switch isMissing := errors.As(err, &apiErr); {
		case isMissing && final:
			return nil, noUsageError(v, queries, err)
		case err != nil && !isMissing:
			return nil, err
		case final:
			return usages, nil
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// noUsageError returns an error that explains why a named pod has no usage. If all named pods have
// running containers, it returns err.
func noUsageError(v *server.View, queries []query, err error) error {
	for _, q := range queries {
		pod := v.Pod(server.Key{Namespace: q.namespace, Name: q.name})
		if q.name != "" && pod != nil && len(runningStatuses(pod)) == 0 {
			return fmt.Errorf("showing the resource usage of %s: none of its containers is running; run \"podd why %s\" for the reason", displayName(v, pod.Key()), podArgument(v, pod.Key()))
		}
	}
	return err
}

// fetchUsage requests the usage of the objects in queries.
func (c *TopCmd) fetchUsage(ctx context.Context, p *client.Client, queries []query) ([]resourceUsage, error) {
	selection := url.Values{}
	if c.Selector != "" {
		selection.Set("labelSelector", c.Selector)
	}
	var usages []resourceUsage
	for _, q := range queries {
		if q.name != "" {
			var usage resourceUsage
			if err := p.Fetch(ctx, q.Path(q.namespace, q.name), nil, "", &usage); err != nil {
				return nil, err
			}
			usages = append(usages, usage)
			continue
		}
		var list struct{ Items []resourceUsage }
		if err := p.Fetch(ctx, q.Path(q.namespace, ""), selection, "", &list); err != nil {
			return nil, err
		}
		usages = append(usages, list.Items...)
	}
	return usages, nil
}

// hasUnsampledContainer reports whether a selected container has just started and has no sample yet.
func (c *TopCmd) hasUnsampledContainer(v *server.View, usages []resourceUsage, queries []query) bool {
	if c.isForNodes() || c.Selector != "" && len(usages) == 0 {
		return false
	}
	byPod := map[server.Key]*resourceUsage{}
	for i := range usages {
		byPod[server.Key{Namespace: usages[i].Namespace, Name: usages[i].Name}] = &usages[i]
	}
	return slices.ContainsFunc(v.Pods, func(pod *server.PodView) bool {
		usage := byPod[pod.Key()]
		if usage == nil && c.Selector != "" || !slices.ContainsFunc(queries, func(q query) bool {
			return (q.namespace == "" || q.namespace == pod.Pod.Namespace) && (q.name == "" || q.name == pod.Pod.Name)
		}) {
			return false
		}
		return slices.ContainsFunc(runningStatuses(pod), func(s v1.ContainerStatus) bool {
			hasSample := usage != nil && slices.ContainsFunc(usage.Containers, func(u containerUsage) bool { return u.Name == s.Name })
			// One second is added, because StartedAt has a resolution of one second.
			return !hasSample && time.Since(s.State.Running.StartedAt.Time) < sampleTimeout+time.Second
		})
	})
}

// runningStatuses returns the statuses of the running containers of a pod.
func runningStatuses(p *server.PodView) []v1.ContainerStatus {
	var statuses []v1.ContainerStatus
	for s := range server.ContainerStatuses(p.Pod) {
		if isRunning(*s) {
			statuses = append(statuses, *s)
		}
	}
	return statuses
}
