package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
)

// GetCmd is the podd get command.
type GetCmd struct {
	client.Flags
	ListScope
	Resource      string   `arg:"" help:"Resource type or its short name, a comma-separated list of types, or TYPE/NAME. Examples: pods; po; secrets,configmaps; pod/web." complete:"resource"`
	Names         []string `arg:"" optional:"" name:"name" help:"Object names. The node name at the end of a pod name may be omitted. Default: all objects." complete:"object"`
	Output        string   `short:"o" enum:",wide,json,yaml,name" default:"" placeholder:"FORMAT" help:"Output format. One of: wide, json, yaml, name."`
	Selector      string   `short:"l" placeholder:"SELECTOR" help:"Selector (label query) to filter on, for example app=web,tier!=test."`
	FieldSelector string   `placeholder:"SELECTOR" help:"Selector (field query) to filter on, for example status.phase=Running."`
	Watch         bool     `short:"w" help:"After listing the requested objects, watch for changes."`
	NoHeaders     bool     `help:"Print output without headers."`
}

// A query is a request for one object or, without a name, for a list.
type query struct {
	client.Resource
	namespace, name string
}

// Run prints objects of podd's Kubernetes API, as kubectl get does.
func (c *GetCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	queries, err := c.queries(ctx, p)
	if err != nil {
		return err
	}
	if c.Watch && len(queries) > 1 {
		return exit.NewError(exit.Usage, errors.New("with -w, specify a single resource type or object"))
	}
	o := &objectPrinter{GetCmd: c, hasTypePrefix: hasSeveralKinds(queries), useColor: printer.SupportsColor(s.Out)}
	switch {
	case c.Output == "json" || c.Output == "yaml" || c.Output == "name":
		err = o.printObjects(ctx, p, queries, s)
	default:
		err = o.printTables(ctx, p, queries, s)
	}
	if err != nil || !c.Watch {
		return err
	}
	return o.follow(ctx, p, queries[0], s.Out)
}

// queries returns a query for each object and each list that the arguments name.
func (c *GetCmd) queries(ctx context.Context, p *client.Client) ([]query, error) {
	all, err := p.ListResources(ctx)
	if err != nil {
		return nil, err
	}
	if strings.Contains(c.Resource, "/") {
		var list []query
		for _, arg := range append([]string{c.Resource}, c.Names...) {
			kind, name, ok := strings.Cut(arg, "/")
			if !ok {
				return nil, exit.NewError(exit.Usage, fmt.Errorf("%q is not of the form TYPE/NAME; use that form for all arguments or for none", arg))
			}
			if list, err = c.addQueries(ctx, p, list, all, kind, []string{name}); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return c.addQueries(ctx, p, nil, all, c.Resource, c.Names)
}

// addQueries appends queries to list. kinds contains resource types, separated by commas. If names
// is empty, addQueries adds one query per type, for all objects of that type. Otherwise, it adds
// one query per type and name.
func (c *GetCmd) addQueries(ctx context.Context, p *client.Client, list []query, types []client.Resource, kinds string, names []string) ([]query, error) {
	selected, err := chooseResources(types, kinds)
	if err != nil {
		return nil, err
	}
	for _, r := range selected {
		if len(names) == 0 {
			list = append(list, query{r, c.namespace(), ""})
		}
		for _, name := range names {
			q, err := c.newQuery(ctx, p, r, name)
			if err != nil {
				return nil, err
			}
			if r.Namespaced && q.namespace == "" {
				return nil, exit.NewError(exit.Usage, errors.New("a resource cannot be retrieved by name across all namespaces; use -n"))
			}
			list = append(list, q)
		}
	}
	return list, nil
}

// newQuery returns the query for an object. A pod name may omit the node name at its end.
func (s ListScope) newQuery(ctx context.Context, p *client.Client, r client.Resource, name string) (query, error) {
	switch {
	case r.Name == "pods":
		_, pod, err := findPod(ctx, p, s.podSelector(), name)
		if err != nil {
			return query{}, err
		}
		return query{r, pod.Pod.Namespace, pod.Pod.Name}, nil
	case r.Namespaced:
		return query{r, s.namespace(), name}, nil
	}
	return query{r, "", name}, nil
}

// selectors returns the URL parameters of -l and --field-selector.
func (c *GetCmd) selectors() url.Values {
	q := url.Values{}
	if c.Selector != "" {
		q.Set("labelSelector", c.Selector)
	}
	if c.FieldSelector != "" {
		q.Set("fieldSelector", c.FieldSelector)
	}
	return q
}

// hasSeveralKinds reports whether the queries are for more than one resource type.
func hasSeveralKinds(queries []query) bool {
	for _, q := range queries {
		if q.Name != queries[0].Name {
			return true
		}
	}
	return false
}

// noResourcesMessage returns kubectl's message for an empty list.
func noResourcesMessage(q query) string {
	message := "No resources found"
	if q.Namespaced && q.namespace != "" {
		message += " in " + q.namespace + " namespace; use -A for all namespaces"
	}
	return printer.Escape(message) + "\n"
}

// follow prints later changes of the objects of a query.
func (o *objectPrinter) follow(ctx context.Context, p *client.Client, target query, w io.Writer) error {
	q := o.selectors()
	q.Set("watch", "1")
	q.Set("resourceVersion", o.resourceVersion)
	if target.name != "" {
		q.Set("fieldSelector", strings.TrimPrefix(o.FieldSelector+",metadata.name="+target.name, ","))
	}
	accept := ""
	if isTableFormat(o.Output) {
		accept = client.AcceptTables
	}
	return p.WatchObjects(ctx, target.Path(target.namespace, ""), q, accept, func(e *metav1.WatchEvent) (bool, error) {
		switch {
		case e.Type == "ERROR":
			var status metav1.Status
			if err := json.Unmarshal(e.Object.Raw, &status); err != nil {
				return true, fmt.Errorf("decoding podd's response: %w", err)
			}
			return true, errors.New(status.Message)
		case e.Type == "BOOKMARK":
			return false, nil
		case !isTableFormat(o.Output):
			return false, o.printObject(target.Resource, e.Object.Raw, w)
		}
		table := &metav1.Table{}
		if err := json.Unmarshal(e.Object.Raw, table); err != nil {
			return true, fmt.Errorf("decoding podd's response: %w", err)
		}
		return false, o.printRows(target.Resource, table, w)
	})
}
