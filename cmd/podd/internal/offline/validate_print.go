package offline

import (
	"fmt"
	"io"
	"strings"

	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/manifest"
)

// count returns the number of errors and warnings.
func (r *checkOutput) count() (errs, warnings int) {
	for _, p := range r.Problems {
		if p.Severity == manifest.Error {
			errs++
		} else {
			warnings++
		}
	}
	return errs, warnings
}

// summary returns the last line of the output.
func (r *checkOutput) summary() string {
	errs, warnings := r.count()
	return fmt.Sprintf("%s, %s: %s, %s", printer.Plural(r.Files, "file"), printer.Plural(len(r.Pods), "pod"),
		printer.Plural(errs, "error"), printer.Plural(warnings, "warning"))
}

// print prints the result. In the text format, stdout contains the summary. In other
// formats, print writes it to stderr.
func (r *checkOutput) print(format string, s iostreams.Streams) error {
	var b strings.Builder
	var err error
	diagnostics := ""
	switch format {
	case "yaml":
		diagnostics = r.lines()
		err = r.yaml(&b)
	case "json":
		err = r.json(&b)
	case "sarif":
		err = r.sarif(&b)
	case "github":
		r.github(&b)
		diagnostics = r.summary() + "\n"
	default:
		b.WriteString(r.lines())
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.Err, diagnostics); err != nil {
		return err
	}
	_, err = io.WriteString(s.Out, b.String())
	return err
}

// lines returns the text format: one line for each problem, and the summary.
func (r *checkOutput) lines() string {
	var b strings.Builder
	for _, p := range r.Problems {
		b.WriteString(printer.Escape(p.String()) + "\n")
	}
	b.WriteString(r.summary() + "\n")
	return b.String()
}
