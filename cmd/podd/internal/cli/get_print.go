package cli

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

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
)

// objectPrinter prints objects of the Kubernetes API as kubectl get does.
type objectPrinter struct {
	*GetCmd
	hasTypePrefix   bool // print names with their resource type as a prefix
	useColor        bool
	columns         []metav1.TableColumnDefinition // columns of the current table
	table           printer.Table
	resourceVersion string // resource version in the response to the last query
}

// isTableFormat reports whether an output format is a table.
func isTableFormat(format string) bool { return format == "" || format == "wide" }

// printTables prints a table for each query.
func (o *objectPrinter) printTables(ctx context.Context, p *client.Client, queries []query, s iostreams.Streams) error {
	rowCount := 0
	for n, q := range queries {
		t := &metav1.Table{}
		if err := p.Fetch(ctx, q.Path(q.namespace, q.name), o.selectors(), client.AcceptTables, t); err != nil {
			return err
		}
		o.resourceVersion = t.ResourceVersion
		if n > 0 && q.Name != queries[n-1].Name {
			o.columns = nil
			if rowCount > 0 && len(t.Rows) > 0 {
				if _, err := io.WriteString(s.Out, "\n"); err != nil {
					return err
				}
			}
		}
		rowCount += len(t.Rows)
		if err := o.printRows(q.Resource, t, s.Out); err != nil {
			return err
		}
	}
	if rowCount > 0 {
		return nil
	}
	_, err := io.WriteString(s.Err, noResourcesMessage(queries[0]))
	return err
}

// printRows prints the rows of a table. It first prints the header if the header of this table has
// not been printed yet.
func (o *objectPrinter) printRows(r client.Resource, t *metav1.Table, w io.Writer) error {
	var lines [][]string
	if len(t.Rows) == 0 {
		return nil
	}
	if o.columns == nil {
		o.columns = t.ColumnDefinitions
		o.table = printer.Table{HasKubectlWidths: true}
		if o.useColor {
			o.table.ColorCell = o.cellPainter(r)
		}
		if !o.NoHeaders {
			lines = append(lines, o.header(r))
		}
	}
	for _, row := range t.Rows {
		cells, err := o.cells(r, row)
		if err != nil {
			return err
		}
		lines = append(lines, cells)
	}
	_, err := io.WriteString(w, o.table.FormatLines(lines))
	return err
}

// isShown reports whether a column is printed.
func (o *objectPrinter) isShown(c metav1.TableColumnDefinition) bool {
	return c.Priority == 0 || o.Output == "wide"
}

// header returns the titles of the shown columns for a table of the resource r.
func (o *objectPrinter) header(r client.Resource) []string {
	var header []string
	if r.Namespaced && o.AllNamespaces {
		header = append(header, "NAMESPACE")
	}
	for _, c := range o.columns {
		if o.isShown(c) {
			header = append(header, strings.ToUpper(c.Name))
		}
	}
	return header
}

// cells returns the shown cells of a row for a table of the resource r.
func (o *objectPrinter) cells(r client.Resource, row metav1.TableRow) ([]string, error) {
	var cells []string
	if r.Namespaced && o.AllNamespaces {
		var meta metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &meta); err != nil {
			return nil, fmt.Errorf("decoding podd's response: %w", err)
		}
		cells = append(cells, printer.Escape(meta.Namespace))
	}
	for i, c := range o.columns {
		if i >= len(row.Cells) || !o.isShown(c) {
			continue
		}
		text := printer.Escape(cellText(row.Cells[i]))
		if c.Format == "name" && o.hasTypePrefix {
			text = r.NameWithType(text)
		}
		cells = append(cells, text)
	}
	return cells, nil
}

// cellText formats a table cell that was decoded from JSON.
func cellText(cell any) string {
	switch c := cell.(type) {
	case nil:
		return "<none>"
	case float64:
		return strconv.FormatFloat(c, 'f', -1, 64)
	}
	return fmt.Sprint(cell)
}

// cellPainter returns a function that colors the columns STATUS and TYPE.
func (o *objectPrinter) cellPainter(r client.Resource) func(int, string) string {
	header := o.header(r)
	status, kind := slices.Index(header, "STATUS"), slices.Index(header, "TYPE")
	return func(column int, cell string) string {
		switch {
		case cell == header[column]:
		case column == status:
			return printer.ColorStatus(cell)
		case column == kind:
			return printer.ColorEventType(cell)
		}
		return cell
	}
}

// printObjects prints objects in the formats json, yaml and name. In JSON and YAML, it prints a
// single named object as it is, and several objects as a List. With -w it prints each object
// separately.
func (o *objectPrinter) printObjects(ctx context.Context, p *client.Client, queries []query, s iostreams.Streams) error {
	items := []json.RawMessage{}
	for _, q := range queries {
		if q.name != "" {
			var object json.RawMessage
			if err := p.Fetch(ctx, q.Path(q.namespace, q.name), o.selectors(), "", &object); err != nil {
				return err
			}
			var meta metav1.PartialObjectMetadata
			if err := json.Unmarshal(object, &meta); err != nil {
				return fmt.Errorf("decoding podd's response: %w", err)
			}
			o.resourceVersion = meta.ResourceVersion
			items = append(items, object)
			continue
		}
		var list struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := p.Fetch(ctx, q.Path(q.namespace, ""), o.selectors(), "", &list); err != nil {
			return err
		}
		o.resourceVersion = list.Metadata.ResourceVersion
		if o.Output == "name" {
			for _, item := range list.Items {
				if err := o.printObject(q.Resource, item, s.Out); err != nil {
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
			if err := o.printObject(queries[min(n, len(queries)-1)].Resource, item, s.Out); err != nil {
				return err
			}
		}
		return nil
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]string{"resourceVersion": ""}, "items": items})
	if err != nil {
		return fmt.Errorf("encoding the list: %w", err)
	}
	return o.printObject(client.Resource{}, list, s.Out)
}

func (o *objectPrinter) printObject(r client.Resource, object json.RawMessage, w io.Writer) error {
	if o.Output == "name" {
		var meta metav1.PartialObjectMetadata
		if err := json.Unmarshal(object, &meta); err != nil {
			return fmt.Errorf("decoding podd's response: %w", err)
		}
		_, err := io.WriteString(w, printer.Escape(r.NameWithType(meta.Name))+"\n")
		return err
	}
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return fmt.Errorf("decoding podd's response: %w", err)
	}
	removeManagedFields(fields)
	if o.Output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "    ")
		e.SetEscapeHTML(false)
		return e.Encode(fields)
	}
	object, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encoding as YAML: %w", err)
	}
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return fmt.Errorf("encoding as YAML: %w", err)
	}
	if o.Watch {
		text = append([]byte("---\n"), text...)
	}
	_, err = w.Write(text)
	return err
}

// removeManagedFields removes the managed fields of an object, or of the items of a list,
// as kubectl get does.
func removeManagedFields(object map[string]any) {
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	items, _ := object["items"].([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			removeManagedFields(o)
		}
	}
}
