package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"podd/server"
)

// follow prints what differs from the View before: every changed pod again,
// as kubectl get -w does, and every new problem. The first View is printed
// whole.
func (l *listing) follow(v *server.View, s Streams) error {
	v = l.narrowed(v)
	news, err := l.news(v)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.Out, news); err != nil {
		return err
	}
	var b strings.Builder
	for _, p := range v.Problems {
		if !slices.Contains(l.problems, p) && !inStatus(v, p) {
			b.WriteString(problemText(p, l.dir) + "\n")
		}
	}
	if !l.begun && len(v.Pods) == 0 {
		b.WriteString(nothingRuns(v, l.Namespace))
	}
	l.problems, l.begun = v.Problems, true
	_, err = io.WriteString(s.Err, b.String())
	return err
}

// news are the rows that were not shown yet.
func (l *listing) news(v *server.View) (string, error) {
	if l.shown == nil {
		l.shown = map[server.Key]string{}
	}
	seen := map[server.Key]bool{}
	var rows [][]string
	var b strings.Builder
	for _, p := range v.Pods {
		seen[p.Key()] = true
		identity, row, err := l.entry(v, p)
		if err != nil {
			return "", err
		}
		if l.shown[p.Key()] == identity {
			continue
		}
		l.shown[p.Key()] = identity
		rows = append(rows, row)
	}
	rows = append(rows, l.leavers(v, seen)...)
	if !l.tabular() {
		for _, row := range rows {
			b.WriteString(row[0])
		}
		return b.String(), nil
	}
	if l.table.widths == nil && len(rows) > 0 {
		rows = slices.Insert(rows, 0, heads(l.Output == "wide"))
	}
	l.table.fit(rows)
	for _, row := range rows {
		b.WriteString(l.table.line(row))
	}
	return b.String(), nil
}

func (l *listing) tabular() bool { return l.Output == "" || l.Output == "wide" }

// entry is what is printed of a pod, and the part of it that has to differ for
// it to be printed again: ages do not count.
func (l *listing) entry(v *server.View, p *server.PodView) (identity string, row []string, err error) {
	var text []byte
	switch l.Output {
	case "json":
		text, err = json.Marshal(p)
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(p)
		text = append([]byte("---\n"), text...)
	case "name":
		text = []byte(title(v, p.Key()) + "\n")
	default:
		row = l.cells(v, p)
		timeless := slices.Clone(row)
		timeless[4], _, _ = strings.Cut(row[4], " (") // restarts, without how long ago
		timeless[5] = ""                              // age
		f := fileOf(v, p.Path)
		timeless[len(timeless)-1] = f.Behind + "\x00" + pulledImages(p)
		return strings.Join(timeless, "\x00"), row, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("writing %s: %w", title(v, p.Key()), err)
	}
	return string(text), []string{string(text)}, nil
}

// leavers are rows for the pods that are no more; only a table has them.
func (l *listing) leavers(v *server.View, seen map[server.Key]bool) [][]string {
	var rows [][]string
	for key := range l.shown {
		if seen[key] {
			continue
		}
		delete(l.shown, key)
		if l.tabular() {
			row := slices.Repeat([]string{"-"}, len(heads(l.Output == "wide")))
			row[0], row[1], row[3] = key.Namespace, shortName(v, key.Name), "Deleted"
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, slices.Compare)
	return rows
}
