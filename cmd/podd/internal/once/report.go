package once

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Report is a file that a result is written to.
type Report struct {
	path   string
	format func(io.Writer, *Result) error
}

// NewReport takes the format from the name: JUnit for .xml, JSON for .json.
func NewReport(path string) (*Report, error) {
	switch filepath.Ext(path) {
	case ".xml":
		return &Report{path, writeJUnit}, nil
	case ".json":
		return &Report{path, writeJSON}, nil
	}
	return nil, fmt.Errorf("--report %s: the name tells the format; want one that ends in .xml (JUnit) or .json", path)
}

// Write replaces what is in the file.
func (r *Report) Write(result *Result) error {
	var b bytes.Buffer
	if err := r.format(&b, result); err != nil {
		return fmt.Errorf("writing the report %s: %w", r.path, err)
	}
	if err := os.WriteFile(r.path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// NotRun is the result of a run that could not begin.
func NotRun(why error) *Result {
	v := Verdict{Outcome: Broken, Code: CodeOwn, Why: why.Error()}
	row := Row{Name: "podd", Pod: "podd", State: Failed, Text: plain(why.Error())}
	return &Result{Verdict: v, Rows: []Row{row}}
}
