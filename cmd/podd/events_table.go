package main

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// one prints one event, below the heads where it is the first of a table.
func (t *eventTable) one(e *v1.Event, w io.Writer) error {
	switch t.Output {
	case "json", "yaml":
		e.APIVersion, e.Kind = "v1", "Event"
		return t.object(e, w)
	case "name":
		_, err := io.WriteString(w, plain("event/"+e.Name)+"\n")
		return err
	}
	var b strings.Builder
	if !t.headed {
		t.headed = true
		t.table.paint = t.paint()
		t.table.fit([][]string{t.heads()})
		b.WriteString(t.table.line(t.heads()))
	}
	cells := t.cells(e)
	t.table.fit([][]string{cells})
	b.WriteString(t.table.line(cells))
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *eventTable) heads() []string {
	heads := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT"}
	if t.AllNamespaces {
		heads = append([]string{"NAMESPACE"}, heads...)
	}
	if t.Output == "wide" {
		return append(heads, "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN", "COUNT", "NAME")
	}
	return append(heads, "MESSAGE")
}

// cells are an event's row.
func (t *eventTable) cells(e *v1.Event) []string {
	now := t.now()
	first, last := since(e.FirstTimestamp.Time, now), since(e.LastTimestamp.Time, now)
	row := []string{last, e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind) + "/" + shortEventName(e)}
	if t.AllNamespaces {
		row = append([]string{e.Namespace}, row...)
	}
	if t.Output == "wide" {
		row = append(row, orNone(e.InvolvedObject.FieldPath), e.Source.Component+", "+e.Source.Host, e.Message, first, strconv.Itoa(int(e.Count)), e.Name)
	} else {
		row = append(row, e.Message)
		if e.Count > 1 {
			at := len(row) - 5
			row[at] = last + " (x" + strconv.Itoa(int(e.Count)) + " over " + first + ")"
		}
	}
	for i := range row {
		row[i] = plain(row[i])
	}
	return row
}

// paint colours the column TYPE.
func (t *eventTable) paint() func(int, string) string {
	if !t.colour {
		return nil
	}
	kind := slices.Index(t.heads(), "TYPE")
	return func(column int, cell string) string {
		if column != kind {
			return cell
		}
		return tintedType(cell)
	}
}

// coloured tells whether w is a terminal of somebody who wants colours.
func coloured(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
