package offline

import (
	"fmt"
	"io"
	"strings"

	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/manifest"
)

// countProblems returns the number of errors and warnings.
func (r *resultPrinter) countProblems() (errs, warnings int) {
	for _, p := range r.Problems {
		if p.Severity == manifest.Error {
			errs++
		} else {
			warnings++
		}
	}
	return errs, warnings
}

// summaryLine returns the last line of the output.
func (r *resultPrinter) summaryLine() string {
	errs, warnings := r.countProblems()
	return fmt.Sprintf("%s, %s: %s, %s", printer.FormatCount(r.InputCount, "file"), printer.FormatCount(len(r.Pods), "pod"),
		printer.FormatCount(errs, "error"), printer.FormatCount(warnings, "warning"))
}

// print prints the result. In the text format, stdout contains the problems and the summary. With
// -o yaml they are written to stderr, and with -o github the summary is written to stderr. JSON and
// SARIF have no summary.
func (r *resultPrinter) print(format string, s iostreams.Streams) error {
	var b strings.Builder
	var err error
	diagnostics := ""
	switch format {
	case "yaml":
		diagnostics = r.textLines()
		err = r.printYAML(&b)
	case "json":
		err = r.printJSON(&b)
	case "sarif":
		err = r.printSARIF(&b)
	case "github":
		r.printGitHub(&b)
		diagnostics = r.summaryLine() + "\n"
	default:
		b.WriteString(r.textLines())
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

// textLines returns the text format: one line for each problem, and the summary.
func (r *resultPrinter) textLines() string {
	var b strings.Builder
	for _, p := range r.Problems {
		b.WriteString(printer.Escape(p.String()) + "\n")
	}
	b.WriteString(r.summaryLine() + "\n")
	return b.String()
}
