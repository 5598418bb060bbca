package main

import (
	"fmt"
	"io"
	"strings"

	"podd/manifest"
)

// count tells errors and warnings.
func (r *checked) count() (errs, warnings int) {
	for _, p := range r.problems {
		if p.Severity == manifest.Error {
			errs++
		} else {
			warnings++
		}
	}
	return errs, warnings
}

// summary is the last line: whether the manifests are good.
func (r *checked) summary() string {
	errs, warnings := r.count()
	return fmt.Sprintf("%s, %s: %s, %s", plural(r.files, "file"), plural(len(r.pods), "pod"),
		plural(errs, "error"), plural(warnings, "warning"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// print writes the data of a format to stdout. With text the summary belongs
// to the data; with the others it is talk.
func (r *checked) print(format string, s Streams) error {
	var b strings.Builder
	var err error
	talk := ""
	switch format {
	case "yaml":
		talk = r.lines()
		err = r.yaml(&b)
	case "json":
		err = r.json(&b)
	case "sarif":
		err = r.sarif(&b)
	case "github":
		r.github(&b)
		talk = r.summary() + "\n"
	default:
		b.WriteString(r.lines())
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.Err, talk); err != nil {
		return err
	}
	_, err = io.WriteString(s.Out, b.String())
	return err
}

// lines is the text format: one line a problem, and the summary.
func (r *checked) lines() string {
	var b strings.Builder
	for _, p := range r.problems {
		b.WriteString(plain(p.String()) + "\n")
	}
	b.WriteString(r.summary() + "\n")
	return b.String()
}
