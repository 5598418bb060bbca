package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"podd/cmd/podd/internal/iostreams"
	"podd/manifest/order"
	"podd/server"
)

// printChanges prints the pods and problems that have changed since the previous View, as kubectl
// get -w does. It prints the first View completely.
func (l *viewPrinter) printChanges(v *server.View, s iostreams.Streams) error {
	v = l.filterView(v)
	news, err := l.changedRows(v)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.Out, news); err != nil {
		return err
	}
	var b strings.Builder
	for _, p := range v.Problems {
		if !slices.Contains(l.lastProblems, p) && !isShownInStatus(v, p) {
			b.WriteString(problemText(p, l.workingDir) + "\n")
		}
	}
	if !l.hasPrinted && len(v.Pods) == 0 {
		b.WriteString(noPodsMessage(v, l.Namespace))
	}
	l.lastProblems, l.hasPrinted = v.Problems, true
	_, err = io.WriteString(s.Err, b.String())
	return err
}

// changedRows returns the rows that have changed since the previous View.
func (l *viewPrinter) changedRows(v *server.View) (string, error) {
	if l.printedRows == nil {
		l.printedRows = map[server.Key]string{}
	}
	existing := map[server.Key]bool{}
	var rows [][]string
	for _, p := range v.Pods {
		existing[p.Key()] = true
		identity, row, err := l.rowWithIdentity(v, p)
		if err != nil {
			return "", err
		}
		if l.printedRows[p.Key()] == identity {
			continue
		}
		l.printedRows[p.Key()] = identity
		rows = append(rows, row)
	}
	rows = append(rows, l.deletedRows(v, existing)...)
	if !isTableFormat(l.Output) {
		var b strings.Builder
		for _, row := range rows {
			b.WriteString(row[0])
		}
		return b.String(), nil
	}
	if l.table.IsEmpty() && len(rows) > 0 {
		rows = append([][]string{psHeader(l.Output == "wide")}, rows...)
	}
	return l.table.FormatLines(rows), nil
}

// rowWithIdentity returns the row of a pod and the identity of the row. The pod must be printed again when
// the identity changes. The identity contains no ages, because they always change.
func (l *viewPrinter) rowWithIdentity(v *server.View, p *server.PodView) (identity string, row []string, err error) {
	var text []byte
	switch l.Output {
	case "json":
		text, err = json.Marshal(p)
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(p)
		text = append([]byte("---\n"), text...)
	case "name":
		text = []byte(displayName(v, p.Key()) + "\n")
	default:
		row = l.cells(v, p)
		rowWithoutAges := slices.Clone(row)
		rowWithoutAges[4], _, _ = strings.Cut(row[4], " (") // restarts without the time since the last restart
		rowWithoutAges[5] = ""                              // age
		f := findFile(v, p.Path)
		rowWithoutAges[len(rowWithoutAges)-1] = f.OutdatedReason + "\x00" + formatImagesInPull(p)
		return strings.Join(rowWithoutAges, "\x00"), row, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("encoding pod %s: %w", displayName(v, p.Key()), err)
	}
	return string(text), []string{string(text)}, nil
}

// deletedRows returns a row for each pod that has been deleted. It returns none for formats
// other than tables.
func (l *viewPrinter) deletedRows(v *server.View, existing map[server.Key]bool) [][]string {
	var rows [][]string
	for key := range l.printedRows {
		if existing[key] {
			continue
		}
		delete(l.printedRows, key)
		if isTableFormat(l.Output) {
			row := slices.Repeat([]string{"-"}, len(psHeader(l.Output == "wide")))
			row[0], row[1], row[3] = key.Namespace, shortName(v, key.Name), "Deleted"
			rows = append(rows, row)
		}
	}
	order.Slice(rows, slices.Compare)
	return rows
}
