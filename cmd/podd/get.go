package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GetCmd is podd get.
type GetCmd struct {
	Client
	Scope
	Resource      string   `arg:"" help:"What to list: pods, nodes, events, configmaps, secrets, persistentvolumeclaims …, their short names, several with commas; or TYPE/NAME." complete:"resource"`
	Names         []string `arg:"" optional:"" name:"name" help:"These only; pods with or without the node's name." complete:"object"`
	Output        string   `short:"o" enum:",wide,json,yaml,name" default:"" placeholder:"FORMAT" help:"wide, name, json or yaml."`
	Selector      string   `short:"l" placeholder:"SELECTOR" help:"What has these labels only: app=web,tier!=test."`
	FieldSelector string   `placeholder:"SELECTOR" help:"What has these fields only: status.phase=Running."`
	Watch         bool     `short:"w" help:"Go on with what changes."`
	NoHeaders     bool     `help:"Print no heads of columns."`
}

// query is one request: for a list, or with a name for an object.
type query struct {
	kubeResource
	namespace, name string
}

// Run prints what podd's Kubernetes API has.
func (c *GetCmd) Run(ctx context.Context, s Streams) error {
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	queries, err := c.queries(ctx, p)
	if err != nil {
		return err
	}
	if c.Watch && len(queries) > 1 {
		return exitWith(codeUsage, errors.New("with -w, name one resource or one object"))
	}
	o := &objects{GetCmd: c, several: severalKinds(queries), colour: coloured(s.Out)}
	switch {
	case c.Output == "json" || c.Output == "yaml" || c.Output == "name":
		err = o.whole(ctx, p, queries, s)
	default:
		err = o.tables(ctx, p, queries, s)
	}
	if err != nil || !c.Watch {
		return err
	}
	return o.follow(ctx, p, queries[0], s.Out)
}

// queries are what the command line asks for.
func (c *GetCmd) queries(ctx context.Context, p *peer) ([]query, error) {
	all, err := p.kubeResources(ctx)
	if err != nil {
		return nil, err
	}
	var found []query
	if strings.Contains(c.Resource, "/") {
		for _, word := range append([]string{c.Resource}, c.Names...) {
			kind, name, ok := strings.Cut(word, "/")
			if !ok {
				return nil, exitWith(codeUsage, fmt.Errorf("%q: where one is TYPE/NAME, all are", word))
			}
			if found, err = c.add(ctx, p, found, all, kind, []string{name}); err != nil {
				return nil, err
			}
		}
		return found, nil
	}
	return c.add(ctx, p, nil, all, c.Resource, c.Names)
}

func (c *GetCmd) add(ctx context.Context, p *peer, to []query, all []kubeResource, kinds string, names []string) ([]query, error) {
	chosen, err := chooseResources(all, kinds)
	if err != nil {
		return nil, err
	}
	namespace := c.namespace()
	for _, r := range chosen {
		if len(names) == 0 {
			to = append(to, query{r, namespace, ""})
		}
		for _, name := range names {
			q := query{r, namespace, name}
			if r.Name == "pods" {
				_, pod, err := p.findPod(ctx, c.named(), name)
				if err != nil {
					return nil, err
				}
				q.namespace, q.name = pod.Pod.Namespace, pod.Pod.Name
			}
			if r.Namespaced && q.namespace == "" {
				return nil, exitWith(codeUsage, errors.New("a name is of one namespace: name that with -n, not -A"))
			}
			to = append(to, q)
		}
	}
	return to, nil
}

func (c *GetCmd) selection() url.Values {
	q := url.Values{}
	if c.Selector != "" {
		q.Set("labelSelector", c.Selector)
	}
	if c.FieldSelector != "" {
		q.Set("fieldSelector", c.FieldSelector)
	}
	return q
}

func severalKinds(all []query) bool {
	for _, q := range all {
		if q.Name != all[0].Name {
			return true
		}
	}
	return false
}

// noneFound is said, as by kubectl, where a list is empty.
func noneFound(q query) string {
	where := "No resources found"
	if q.Namespaced && q.namespace != "" {
		where += " in " + q.namespace + " namespace; -A looks in all"
	}
	return plain(where) + "\n"
}

// follow prints every change after what was printed.
func (o *objects) follow(ctx context.Context, p *peer, of query, w io.Writer) error {
	q := o.selection()
	q.Set("watch", "1")
	q.Set("resourceVersion", o.revision)
	if of.name != "" {
		q.Set("fieldSelector", strings.TrimPrefix(o.FieldSelector+",metadata.name="+of.name, ","))
	}
	accept := ""
	if o.tabular() {
		accept = asTables
	}
	resp, err := p.ask(ctx, http.MethodGet, of.path(of.namespace, ""), q, nil, accept)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return eachLine(ctx, resp.Body, func(e *metav1.WatchEvent) (bool, error) {
		switch {
		case e.Type == "ERROR":
			var status metav1.Status
			if err := json.Unmarshal(e.Object.Raw, &status); err != nil {
				return true, fmt.Errorf("reading podd's answer: %w", err)
			}
			return true, errors.New(status.Message)
		case e.Type == "BOOKMARK":
			return false, nil
		case !o.tabular():
			return false, o.one(of.kubeResource, e.Object.Raw, w)
		}
		table := &metav1.Table{}
		if err := json.Unmarshal(e.Object.Raw, table); err != nil {
			return true, fmt.Errorf("reading podd's answer: %w", err)
		}
		return false, o.rows(of.kubeResource, table, w)
	})
}
