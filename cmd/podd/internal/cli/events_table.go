package cli

import (
	"io"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
)

// printEvent prints one event. It prints the header before the first event of a table.
func (t *eventPrinter) printEvent(e *v1.Event, w io.Writer) error {
	switch t.Output {
	case "json", "yaml":
		e.APIVersion, e.Kind = "v1", "Event"
		return t.printObject(e, w)
	case "name":
		_, err := io.WriteString(w, printer.Escape("event/"+e.Name)+"\n")
		return err
	}
	var b strings.Builder
	if !t.hasPrintedHeader {
		t.hasPrintedHeader = true
		t.table.ColorCell = t.cellPainter()
		t.table.WidenColumns([][]string{t.header()})
		b.WriteString(t.table.FormatLine(t.header()))
	}
	cells := t.cells(e)
	t.table.WidenColumns([][]string{cells})
	b.WriteString(t.table.FormatLine(cells))
	_, err := io.WriteString(w, b.String())
	return err
}

// header returns the titles of the columns.
func (t *eventPrinter) header() []string {
	header := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT"}
	if t.AllNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if t.Output == "wide" {
		return append(header, "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN", "COUNT", "NAME")
	}
	return append(header, "MESSAGE")
}

// cells returns the row of an event.
func (t *eventPrinter) cells(e *v1.Event) []string {
	now := t.now()
	first, last := printer.FormatAge(e.FirstTimestamp.Time, now), printer.FormatAge(e.LastTimestamp.Time, now)
	message := paths.ShortenStart(e.Message, t.workingDir)
	row := []string{last, e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind) + "/" + shortEventName(e)}
	if t.AllNamespaces {
		row = append([]string{e.Namespace}, row...)
	}
	if t.Output == "wide" {
		row = append(row, printer.OrNone(e.InvolvedObject.FieldPath), e.Source.Component+", "+e.Source.Host, message, first, strconv.Itoa(int(e.Count)), e.Name)
	} else {
		row = append(row, message)
		if e.Count > 1 {
			at := len(row) - 5
			row[at] = last + " (x" + strconv.Itoa(int(e.Count)) + " over " + first + ")"
		}
	}
	for i := range row {
		row[i] = printer.Escape(row[i])
	}
	return row
}

// cellPainter returns a function that colors the column TYPE, or nil if colors are off.
func (t *eventPrinter) cellPainter() func(column int, cell string) string {
	if !t.useColor {
		return nil
	}
	kind := slices.Index(t.header(), "TYPE")
	return func(column int, cell string) string {
		if column != kind {
			return cell
		}
		return printer.ColorEventType(cell)
	}
}
