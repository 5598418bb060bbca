package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// objects prints objects of the Kubernetes API as kubectl get does.
type objects struct {
	*GetCmd
	several  bool // kinds of objects: each is named with its kind
	colour   bool
	columns  []metav1.TableColumnDefinition // of the table that is printed
	table    table
	revision string // up to which all is printed, of the last query
}

func (o *objects) tabular() bool { return o.Output == "" || o.Output == "wide" }

// tables prints a table for each kind.
func (o *objects) tables(ctx context.Context, p *peer, queries []query, s Streams) error {
	printed := 0
	for n, q := range queries {
		t := &metav1.Table{}
		if err := p.fetch(ctx, q.path(q.namespace, q.name), o.selection(), asTables, t); err != nil {
			return err
		}
		o.revision = t.ResourceVersion
		if n > 0 && q.Name != queries[n-1].Name {
			o.columns = nil
			if printed > 0 && len(t.Rows) > 0 {
				if _, err := io.WriteString(s.Out, "\n"); err != nil {
					return err
				}
			}
		}
		printed += len(t.Rows)
		if err := o.rows(q.kubeResource, t, s.Out); err != nil {
			return err
		}
	}
	if printed > 0 {
		return nil
	}
	_, err := io.WriteString(s.Err, noneFound(queries[0]))
	return err
}

// rows prints those of a table, below the heads where they are the first.
func (o *objects) rows(r kubeResource, t *metav1.Table, w io.Writer) error {
	var lines [][]string
	if len(t.Rows) == 0 {
		return nil
	}
	if o.columns == nil {
		o.columns = t.ColumnDefinitions
		o.table = table{kubectl: true}
		if o.colour {
			o.table.paint = o.paint(r)
		}
		if !o.NoHeaders {
			lines = append(lines, o.heads(r))
		}
	}
	for _, row := range t.Rows {
		cells, err := o.cells(r, row)
		if err != nil {
			return err
		}
		lines = append(lines, cells)
	}
	o.table.fit(lines)
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(o.table.line(line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shows says whether a column is printed.
func (o *objects) shows(c metav1.TableColumnDefinition) bool {
	return c.Priority == 0 || o.Output == "wide"
}

func (o *objects) heads(r kubeResource) []string {
	var heads []string
	if r.Namespaced && o.AllNamespaces {
		heads = append(heads, "NAMESPACE")
	}
	for _, c := range o.columns {
		if o.shows(c) {
			heads = append(heads, strings.ToUpper(c.Name))
		}
	}
	return heads
}

func (o *objects) cells(r kubeResource, row metav1.TableRow) ([]string, error) {
	var cells []string
	if r.Namespaced && o.AllNamespaces {
		var meta metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &meta); err != nil {
			return nil, fmt.Errorf("reading podd's answer: %w", err)
		}
		cells = append(cells, plain(meta.Namespace))
	}
	for i, c := range o.columns {
		if i >= len(row.Cells) || !o.shows(c) {
			continue
		}
		text := plain(cellText(row.Cells[i]))
		if c.Format == "name" && o.several {
			text = r.title(text)
		}
		cells = append(cells, text)
	}
	return cells, nil
}

// cellText is what a cell of a table holds, as it came in JSON.
func cellText(cell any) string {
	switch c := cell.(type) {
	case nil:
		return "<none>"
	case float64:
		return strconv.FormatFloat(c, 'f', -1, 64)
	}
	return fmt.Sprint(cell)
}

// paint colours what a row is by the columns STATUS and TYPE.
func (o *objects) paint(r kubeResource) func(int, string) string {
	heads := o.heads(r)
	status, kind := slices.Index(heads, "STATUS"), slices.Index(heads, "TYPE")
	return func(column int, cell string) string {
		switch {
		case cell == heads[column]:
		case column == status:
			return tinted(cell)
		case column == kind:
			return tintedType(cell)
		}
		return cell
	}
}

// whole prints objects themselves: one that was named alone, or a List.
func (o *objects) whole(ctx context.Context, p *peer, queries []query, s Streams) error {
	items := []json.RawMessage{}
	for _, q := range queries {
		if q.name != "" {
			var object json.RawMessage
			if err := p.fetch(ctx, q.path(q.namespace, q.name), o.selection(), "", &object); err != nil {
				return err
			}
			var meta metav1.PartialObjectMetadata
			if err := json.Unmarshal(object, &meta); err != nil {
				return fmt.Errorf("reading podd's answer: %w", err)
			}
			o.revision = meta.ResourceVersion
			items = append(items, object)
			continue
		}
		var list struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := p.fetch(ctx, q.path(q.namespace, ""), o.selection(), "", &list); err != nil {
			return err
		}
		o.revision = list.Metadata.ResourceVersion
		if o.Output == "name" {
			for _, item := range list.Items {
				if err := o.one(q.kubeResource, item, s.Out); err != nil {
					return err
				}
			}
		}
		items = append(items, list.Items...)
	}
	switch {
	case o.Output == "name" && queries[0].name == "":
		return nil
	case o.Watch || o.Output == "name" || len(queries) == 1 && queries[0].name != "":
		for n, item := range items {
			if err := o.one(queries[min(n, len(queries)-1)].kubeResource, item, s.Out); err != nil {
				return err
			}
		}
		return nil
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]string{"resourceVersion": ""}, "items": items})
	if err != nil {
		return fmt.Errorf("writing a list: %w", err)
	}
	return o.one(kubeResource{}, list, s.Out)
}

// one prints one object.
func (o *objects) one(r kubeResource, object json.RawMessage, w io.Writer) error {
	if o.Output == "name" {
		var meta metav1.PartialObjectMetadata
		if err := json.Unmarshal(object, &meta); err != nil {
			return fmt.Errorf("reading podd's answer: %w", err)
		}
		_, err := io.WriteString(w, plain(r.title(meta.Name))+"\n")
		return err
	}
	var shown map[string]any
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if err := d.Decode(&shown); err != nil {
		return fmt.Errorf("reading podd's answer: %w", err)
	}
	hideManagers(shown)
	if o.Output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "    ")
		e.SetEscapeHTML(false)
		return e.Encode(shown)
	}
	object, err := json.Marshal(shown)
	if err != nil {
		return fmt.Errorf("writing yaml: %w", err)
	}
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return fmt.Errorf("writing yaml: %w", err)
	}
	if o.Watch {
		text = append([]byte("---\n"), text...)
	}
	_, err = w.Write(text)
	return err
}

// hideManagers leaves out, as kubectl does, who set which field of an object or of
// those of a list.
func hideManagers(object map[string]any) {
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	items, _ := object["items"].([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			hideManagers(o)
		}
	}
}
